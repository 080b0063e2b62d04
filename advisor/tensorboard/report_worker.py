"""The child process that makes the report of one run.

In: a `Job`.  Out: a `Page`, or a `NoPage` with one sentence.

The process reads nothing outside the logdir: no source file that a recording names, and no settings of the current folder. If the
run folder has a report.json, the page is made of that, with the source lines and proofs that it holds; otherwise the run is
analysed.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import Path
from typing import Any

from advisor.host.process_limits import set_limits
from advisor.model.errors import AdvisorError
from advisor.model.regular_files import is_below, is_regular, read_only_below, read_regular
from advisor.model.run_folder import has_profile, run_folder_of
from advisor.model.text import message_of
from advisor.tensorboard.worker_messages import Job, NoPage, Page

MAX_REPORT_BYTES = 64 << 20
"""Largest report.json that is read; those of real runs have less than 3 MB."""
_HEADER_DIRECTIVES = ("default-src", "script-src", "style-src", "img-src", "base-uri", "form-action")
"""Directives of the page's policy that are sent as a header, too. TensorBoard warns of others; these are in the page alone."""


def work(job: Job) -> Page | NoPage:
    """Make the report of one run. Whatever goes wrong becomes a sentence."""
    try:
        set_limits(job.seconds, job.memory_bytes)
        read_only_below(job.logdir)
        return _page_of(job)
    except AdvisorError as error:
        return NoPage(str(error))
    except Exception as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return NoPage(
                f"{job.folder} does not fit into the memory for one analysis: run `advisor analyze {job.folder}`.",
                False,
            )
        reason = f"{type(error).__name__}: {message_of(error)[:300]}"
        return NoPage(
            f"{job.folder} could not be analysed because of an error in tfdata-advisor ({reason}): please report it.",
            False,
        )


def _page_of(job: Job) -> Page:
    from advisor.report.html import content_security_policy, report_to_html

    html = None
    saved = _saved_report(job)
    if saved is not None:
        with suppress(Exception):  # it is damaged or was edited: any value in it may be of any kind
            html = report_to_html(saved)
    if html is None:
        html = report_to_html(_analysed(job))
    policy = content_security_policy()
    header = "; ".join(f"{name} {policy[name]}" for name in _HEADER_DIRECTIVES)
    hashes = tuple(source.strip("'").removeprefix("sha256-") for source in policy["script-src"].split())
    return Page(html, header, hashes)


def _saved_report(job: Job) -> dict[str, Any] | None:
    """Return the report.json of the run folder; None if there is none of this version."""
    from advisor.report.report_json import REPORT_NAME
    from advisor.report.saved_report import parse_report

    folder = run_folder_of(job.files[0]) if job.files else job.folder
    if folder is None:
        return None
    file = folder / REPORT_NAME
    try:
        return parse_report(read_regular(file)) if file.stat().st_size <= MAX_REPORT_BYTES else None
    except OSError:
        return None


def _analysed(job: Job) -> dict[str, Any]:
    """Analyse the run, with the default settings."""
    from advisor.engine import load_rules
    from advisor.model.settings import Settings
    from advisor.report.report_json import report_to_dict
    from advisor.workflows.analyze import Choice, analyze_run

    for file in job.files:
        if not is_regular(file) or not is_below(file, job.logdir):
            raise AdvisorError(f"{file} is no longer a file of the logdir: reload the list of runs.")
    if not job.files and has_profile(job.folder):  # one that was not listed, because it leads elsewhere
        raise AdvisorError(f"The profile of {job.folder} is not in the logdir.")
    settings = Settings()
    report = analyze_run(Path(job.folder), load_rules([], settings), settings, Choice(files=job.files))
    return report_to_dict(report)
