"""Where commands write: the console, progress, the JSON report, and what `--fail-on` makes of a report.

In: options and a `Report`.  Out: text on stdout or stderr, a file, a boolean.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report

EXIT_MATCHED = 1
PIPE_WIDTH = 100
"""Columns where stdout is no terminal and COLUMNS does not say."""


def console_for_people(to_stderr: bool = False) -> Console:
    """The console for what people read: stdout, or stderr where stdout belongs to JSON."""
    from rich.console import Console

    class ReportConsole(Console):
        """Rich ends the program with 1 where the reader of a pipe has left, which is the exit code of `--fail-on`."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if to_stderr else sys.stdout
    has_width = stream.isatty() or "COLUMNS" in os.environ
    return ReportConsole(
        file=stream, width=None if has_width else PIPE_WIDTH, highlight=False, markup=False, emoji=False
    )


def progress_line(is_quiet: bool) -> contextlib.AbstractContextManager[Any]:
    """A callback that shows `Progress` on stderr while its block runs; silent where stderr is no terminal."""
    from rich.console import Console

    from advisor.report.progress import show_progress

    return show_progress(Console(stderr=True), is_quiet)


def progress_bar(is_quiet: bool, budget_s: float) -> contextlib.AbstractContextManager[Any]:
    """As `progress_line`, beside a bar of how much of `budget_s` is used."""
    from rich.console import Console

    from advisor.report.progress import show_budget

    return show_budget(Console(stderr=True), is_quiet, budget_s)


def emit_json(report: Report, json_path: str | None) -> None:
    """Write the JSON report to `json_path`; `-`: stdout; None: nowhere."""
    from advisor.report.report_json import report_to_bytes

    if json_path == "-":
        sys.stdout.buffer.write(report_to_bytes(report))
        sys.stdout.flush()
    elif json_path is not None:
        from advisor.model.outputs import write_output
        from advisor.model.own_files import FileKind

        write_output("--json", Path(json_path), FileKind.REPORT, report_to_bytes(report))


def emit_html(report: Report, html_path: Path | None) -> None:
    """Write the HTML report to `html_path`; None: nowhere but into the run folder."""
    if html_path is not None:
        from advisor.model.outputs import write_output
        from advisor.model.own_files import FileKind
        from advisor.report.html import report_to_html
        from advisor.report.report_json import report_to_dict

        write_output("--html", html_path, FileKind.HTML, report_to_html(report_to_dict(report)))


def check_report_outputs(json_path: str | None, html_path: Path | None) -> None:
    """Refuse outputs that would overwrite what is not ours before anything is run. Raises AdvisorError and UsageError."""
    from advisor.model.outputs import check_output
    from advisor.model.own_files import FileKind

    is_json_file = json_path is not None and json_path != "-"
    if is_json_file and html_path is not None and Path(json_path or "").resolve() == html_path.resolve():
        raise click.UsageError(f"--json and --html both name {html_path}.")
    if is_json_file:
        check_output("--json", Path(json_path or ""), FileKind.REPORT)
    if html_path is not None:
        check_output("--html", html_path, FileKind.HTML)


def show_failure(report: Report) -> None:
    """What a script that failed after its window wrote to stderr: its own traceback, lines of thousands of characters cut."""
    from advisor.model.long_lines import shorten_lines

    recording = report.analysis.recording
    if recording is None or recording.script_exit.code == 0:
        return
    with contextlib.suppress(OSError):
        text = (Path(report.run_folder) / "script.err").read_text("utf-8", errors="replace")
        sys.stderr.write(shorten_lines(text))
        sys.stderr.flush()


def check_fail_on(fail_on: Sequence[str], rules: Sequence[LoadedRule]) -> None:
    """A typing mistake must not turn a gate off. Raises UsageError."""
    check_rule_names("--fail-on", fail_on, ["any", "input-bound", *(loaded.id for loaded in rules)])


def check_rule_names(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raises UsageError, with the nearest known name, for the first of `names` that is not known."""
    from advisor.model.settings import did_you_mean

    for name in names:
        if name not in known:
            raise click.UsageError(f"{option} {name}: there is no such rule.{did_you_mean(name, known)}")


def is_matched(report: Report, fail_on: Sequence[str]) -> bool:
    """Whether one of the `--fail-on` names was found."""
    found = {finding.rule for finding in report.findings}
    return (
        ("any" in fail_on and bool(found))
        or ("input-bound" in fail_on and report.analysis.verdict.is_input_bound)
        or bool(found & set(fail_on))
    )
