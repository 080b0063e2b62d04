"""Output shared by the commands: the console, progress, JSON and HTML reports, and the evaluation of `--fail-on`.

In: options and a `Report`.  Out: text on stdout or stderr, a file, a boolean.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.own_files import FileKind

EXIT_MATCHED = 1
PIPE_WIDTH = 100
"""Columns to use when stdout is not a terminal and COLUMNS is not set."""


def console_for_people(to_stderr: bool = False) -> Console:
    """Return the console for human-readable output.

    Args:
        to_stderr: Write to stderr because stdout receives JSON.
    """
    from rich.console import Console

    class ReportConsole(Console):
        """On a broken pipe rich exits with 1, the exit code of `--fail-on`; this console raises instead."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    stream = sys.stderr if to_stderr else sys.stdout
    has_width = stream.isatty() or "COLUMNS" in os.environ
    return ReportConsole(
        file=stream, width=None if has_width else PIPE_WIDTH, highlight=False, markup=False, emoji=False
    )


def progress_line(is_quiet: bool) -> contextlib.AbstractContextManager[Any]:
    """Context manager that yields a callback showing `Progress` on stderr; silent unless stderr is a terminal."""
    from rich.console import Console

    from advisor.report.progress import show_progress

    return show_progress(Console(stderr=True), is_quiet)


def progress_bar(is_quiet: bool, budget_s: float) -> contextlib.AbstractContextManager[Any]:
    """Like `progress_line`, with a bar that shows how much of `budget_s` seconds is used."""
    from rich.console import Console

    from advisor.report.progress import show_budget

    return show_budget(Console(stderr=True), is_quiet, budget_s)


def emit_json(report: Report, json_path: str | None) -> None:
    """Write the JSON report to `json_path`: a file, `-` for stdout, or None to write nothing."""
    from advisor.model.own_files import FileKind
    from advisor.report.report_json import report_to_bytes

    write_json(json_path, FileKind.REPORT, lambda: report_to_bytes(report))


def write_json(json_path: str | None, kind: FileKind, make: Callable[[], bytes]) -> None:
    """Write the result of `make` to `json_path`: a file of that kind, `-` for stdout, or None to write nothing.

    Args:
        json_path: The value of `--json`.
        kind: What the file holds; an existing file is replaced only if it holds the same.
        make: Returns the JSON; not called if nothing is written.

    Raises:
        AdvisorError: The file cannot be written, or the advisor did not write it.
    """
    if json_path == "-":
        sys.stdout.buffer.write(make())
        sys.stdout.flush()
    elif json_path is not None:
        from advisor.model.outputs import write_output

        write_output("--json", Path(json_path), kind, make())


def emit_html(report: Report, html_path: Path | None) -> None:
    """Write the HTML report to `html_path`; None writes nothing (the run folder has its own copy)."""
    if html_path is not None:
        from advisor.model.outputs import write_output
        from advisor.model.own_files import FileKind
        from advisor.report.html import report_to_html
        from advisor.report.report_json import report_to_dict

        write_output("--html", html_path, FileKind.HTML, report_to_html(report_to_dict(report)))


def check_report_outputs(json_path: str | None, html_path: Path | None) -> None:
    """Refuse, before anything runs, outputs that would overwrite files of others.

    Raises:
        UsageError: Both options name the same file.
        AdvisorError: An output path holds a file that this tool did not write.
    """
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
    """Copy the stderr of a script that failed after its window, such as its traceback, with very long lines cut."""
    from advisor.model.long_lines import shorten_lines

    recording = report.analysis.recording
    if recording is None or recording.script_exit.code == 0:
        return
    with contextlib.suppress(OSError):
        text = (Path(report.run_folder) / "script.err").read_text("utf-8", errors="replace")
        sys.stderr.write(shorten_lines(text))
        sys.stderr.flush()


def check_fail_on(fail_on: Sequence[str], rules: Sequence[LoadedRule]) -> None:
    """Check the values of `--fail-on`: a misspelt name must not disable a CI gate.

    Raises:
        UsageError: A value is neither a rule's id nor `any` nor `input-bound`.
    """
    check_rule_names("--fail-on", fail_on, ["any", "input-bound", *(loaded.id for loaded in rules)])


def check_rule_names(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Check that every name is known.

    Args:
        option: The option that takes the names, for the message.
        names: What the user passed.
        known: Ids of the loaded rules, and other words that the option takes.

    Raises:
        UsageError: A name is unknown; the message suggests the closest known name.
    """
    from advisor.model.text import did_you_mean

    for name in names:
        if name not in known:
            raise click.UsageError(f"{option} {name}: there is no such rule.{did_you_mean(name, known)}")


def is_matched(report: Report, fail_on: Sequence[str]) -> bool:
    """Whether the report matches one of the `--fail-on` names. One or two steps do not make a run input-bound.

    A hint, which nothing has proved, matches the name of its rule but not `any`.
    """
    rules = {finding.rule for finding in report.findings}
    named = rules | {finding.rule for finding in report.hints}
    verdict = report.analysis.verdict
    return (
        ("any" in fail_on and bool(rules))
        or ("input-bound" in fail_on and verdict.is_input_bound and not verdict.is_tentative)
        or bool(named & set(fail_on))
    )
