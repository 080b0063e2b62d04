"""`advisor check`: a gate for CI: budgets, a baseline of known findings, and a comparison with another revision.

In: a script or saved runs, and options.  Out: the result as text, JSON and Markdown; exit code 1 if the check failed.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.output import EXIT_MATCHED, console_for_people, progress_line, show_failure, write_json
from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    json_option,
    out_option,
    request_of,
    run_options,
    target_argument,
)

if TYPE_CHECKING:
    from advisor.model.check_result import Check
    from advisor.workflows.analyze import Request
    from advisor.workflows.check import CheckRequest

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"
"""Set by GitHub Actions to a file to which each step appends Markdown."""


@click.command(
    "check",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Check a script against budgets and a baseline; for CI.",
)
@target_argument("SCRIPT")
@click.option("--against", metavar="REV", help="Also run the script as it is in this git revision, alternating.")
@click.option(
    "--runs", type=click.IntRange(min=1), metavar="N", help="Runs that are aggregated (default: 1, or the setting)."
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Known findings (default: advisor-baseline.json).",
)
@click.option("--update-baseline", is_flag=True, help="Record all present findings as known.")
@click.option("--summary", type=click.Path(path_type=Path), metavar="PATH", help="Write the result as Markdown.")
@json_option
@out_option
@run_options
@click.option("--quiet", is_flag=True, help="Print neither report nor progress.")
@click.option("--show-output", is_flag=True, help="Show the script's output on stderr.")
def command(target: str, args: tuple[str, ...], against: str | None, runs: int | None, baseline: Path | None,
            update_baseline: bool, summary: Path | None, json_path: str | None, quiet: bool, **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Measure SCRIPT and compare it with the budgets in pyproject.toml; exit with 1 if one with the level `error` is exceeded.

    SCRIPT is a script, `-m MODULE`, or one or more saved runs of a script. Findings that advisor-baseline.json holds are known
    and count for no budget. On GitHub, the result is added to the summary of the job.
    """
    from advisor.workflows.analyze import load
    from advisor.workflows.check import CheckRequest, announcement, check

    _check_outputs(json_path, summary)
    request, more = _requests(target, args, options)
    asked = CheckRequest(request, more, runs, against, baseline, update_baseline)
    _check_applicable(asked, target)
    rules, settings = load(request)
    if not (quiet or request.is_saved_run):
        click.echo(announcement(asked, settings), err=True)
    with progress_line(is_quiet=quiet or request.show_output) as on_progress:
        checked = check(asked, rules, settings, on_progress)
    if not (request.is_saved_run or request.show_output):
        show_failure(checked.reports[0])
    _emit(checked.check, json_path, summary)
    if not quiet:
        from advisor.report.check_text import print_check

        print_check(checked.check, console_for_people(to_stderr=json_path == "-"))
    if not request.is_saved_run:
        from advisor.commands.runs import say_pruned
        from advisor.workflows.stored_runs import prune

        say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    return 0 if checked.check.is_passed else EXIT_MATCHED


def _requests(target: str, args: tuple[str, ...], options: dict[str, Any]) -> tuple[Request, tuple[Path, ...]]:
    """Return the request for the target and, if that is a saved run, the further runs: a script has its arguments there."""
    from advisor.model.locations import locate
    from advisor.workflows.analyze import Request

    first = None if target == "-m" else Request(path=locate(target))
    if first is None or not first.is_saved_run:
        return request_of(target, args, options), ()
    more = [locate(text) for text in args]
    other = next((path for path in more if not Request(path=path).is_saved_run), None)
    if other is not None:
        raise click.UsageError(f"{target} is a saved run, so {other} must be one, too; options must precede {target}.")
    for path in more:
        if not path.exists():
            raise click.UsageError(f"There is no saved run {path}.")
    return request_of(target, (), options), tuple(more)


def _check_applicable(asked: CheckRequest, target: str) -> None:
    """Refuse options that would have no effect."""
    if asked.request.is_saved_run:
        for option, value in (("--against", asked.against), ("--runs", asked.runs)):
            if value is not None:
                raise click.UsageError(
                    f"{option} applies only to scripts; {target} is a saved run and is not run again."
                )


def _check_outputs(json_path: str | None, summary: Path | None) -> None:
    """Refuse, before anything runs, outputs that would overwrite files of others."""
    from advisor.model.outputs import check_output
    from advisor.model.own_files import FileKind

    if json_path not in (None, "-"):
        check_output("--json", Path(json_path or ""), FileKind.CHECK)
    if summary is not None:
        check_output("--summary", summary, FileKind.MARKDOWN)


def _emit(check: Check, json_path: str | None, summary: Path | None) -> None:
    """Write the JSON and the summary, and add the summary to that of the CI job."""
    from advisor.export.check_markdown import check_to_markdown
    from advisor.model.outputs import write_output
    from advisor.model.own_files import FileKind
    from advisor.report.check_json import check_to_bytes

    write_json(json_path, FileKind.CHECK, lambda: check_to_bytes(check))
    markdown = check_to_markdown(check).encode("utf-8", "backslashreplace")
    if summary is not None:
        write_output("--summary", summary, FileKind.MARKDOWN, markdown)
    job = os.environ.get(SUMMARY_VARIABLE)
    if job:
        try:
            with Path(job).open("ab") as file:
                file.write(markdown + b"\n")
        except OSError as error:  # the result of the check does not depend on it
            click.echo(f"The summary of the job, {job}, cannot be written: {error.strerror or error}.", err=True)
