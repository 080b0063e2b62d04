"""`advisor fix`: prove fixes on the user's own script, print them, and write them only when told to.

In: a script and options.  Out: the report; with `--fail-on` exit code 0, 1 or 4 (`exit_code_of`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.output import (
    EXIT_MATCHED,
    check_fail_on,
    check_report_outputs,
    check_rule_names,
    console_for_people,
    emit_html,
    emit_json,
    is_matched,
    progress_bar,
)
from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    html_option,
    json_option,
    read_duration,
    report_options,
    request_of,
    run_options,
    target_argument,
)
from advisor.model.errors import AdvisorError
from advisor.model.proof import TRAINING

if TYPE_CHECKING:
    from advisor.model.outcome import Report
    from advisor.workflows.analyze import Request
    from advisor.workflows.fix import FixResult

DEFAULT_BUDGET = "10min"
EXIT_PIPELINE_ALONE = 4


@click.command(
    "fix",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Prove fixes on a script, and write them if told to.",
)
@target_argument("SCRIPT")
@click.option("--write", is_flag=True, help="Write what is proved faster into the source; the backup allows --undo.")
@click.option("--undo", is_flag=True, help="Take the last --write back; nothing is run.")
@click.option("--only", multiple=True, metavar="RULE", help="Try the fixes of this rule alone.")
@click.option(
    "--budget",
    callback=read_duration,
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="T",
    help="Time for everything.",
)
@click.option("--pipeline-only", is_flag=True, help="Prove on the input pipeline alone, without running the training.")
@json_option
@html_option
@run_options
@report_options
def command(target: str, args: tuple[str, ...], json_path: str | None, html_path: Path | None, quiet: bool,
            fail_on: tuple[str, ...], write: bool,
            undo: bool, only: tuple[str, ...], budget: float, pipeline_only: bool, **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Run SCRIPT, try what would make its input faster, and keep what is measured to be faster.

    SCRIPT is a script or `-m MODULE`; all after it belongs to it. No file is changed without --write.
    """
    from advisor.commands.runs import say_pruned
    from advisor.prove.budget import check_budget
    from advisor.workflows.analyze import load
    from advisor.workflows.fix import FixRequest, announcement, check_writable, fix
    from advisor.workflows.stored_runs import prune

    if write and undo:
        raise click.UsageError("--write and --undo exclude each other.")
    if undo:
        return _undo(target, args, quiet)
    check_report_outputs(json_path, html_path)
    request = request_of(target, args, options)
    if request.is_saved_run:
        raise click.UsageError(f"{target} is a saved run; `advisor fix` needs the script itself, which it runs.")
    rules, settings = load(request)
    check_fail_on(fail_on, rules)
    check_rule_names("--only", only, [loaded.id for loaded in rules])
    if only:  # another rule may want the same change: then it would stand in the report for both
        rules = [loaded for loaded in rules if loaded.id in only]
    wish = FixRequest(request, budget, only, pipeline_only, is_to_be_written=write)
    check_budget(budget)
    check_writable(wish)
    if not quiet:
        click.echo(announcement(wish), err=True)
    with progress_bar(quiet or request.show_output, budget) as on_progress:
        result = fix(wish, rules, settings, on_progress)
    report, refusal = _write(result, request) if write else (result.report, None)
    problem = _keep(report)
    emit_json(report, json_path)
    emit_html(report, html_path)
    if not quiet:
        from advisor.report.proof_text import print_proof

        print_proof(report, console_for_people(to_stderr=json_path == "-"))
        if refusal is None:
            _say_what_next(result, write, target)
    if request.out is None:
        say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    if refusal or problem:  # the proof has been shown: it took minutes
        raise refusal or problem or AssertionError
    return exit_code_of(report, fail_on)


def exit_code_of(report: Report, fail_on: Sequence[str]) -> int:
    """0: `--fail-on` matched nothing, or the kept changes are proved on the training; 4: it matched, and they are proved on the
    pipeline alone; 1: it matched, and nothing that may be applied is proved faster.
    """
    if not is_matched(report, fail_on):
        return 0
    if report.proof is None or not any(fix.is_applied for fix in report.fixes):
        return EXIT_MATCHED
    return 0 if report.proof.proved_on == TRAINING else EXIT_PIPELINE_ALONE


def _undo(target: str, args: tuple[str, ...], quiet: bool) -> int:
    from advisor.rewrite.apply.write import undo

    if target == "-m":
        raise click.UsageError("--undo takes the script's file (or the run folder), not a module's name.")
    if args:
        raise click.UsageError(f"--undo runs nothing and takes no arguments ({args[0]}).")
    for path in undo(Path(target)):
        if not quiet:
            click.echo(f"Restored {path}.")
    return 0


def _write(result: FixResult, request: Request) -> tuple[Report, AdvisorError | None]:
    """Change the user's files as proved, with a backup in the run folder; the report that says so, or why nothing was written."""
    report = result.report
    if not result.patch.files or report.proof is None:
        return report, None
    from advisor.rewrite.apply.write import write_patch

    try:
        if result.changed_meanwhile is not None:
            raise AdvisorError(
                f"{result.changed_meanwhile} has changed since the script was started, so no file was changed; run advisor fix "
                "again."
            )
        written = write_patch(result.patch, Path(report.run_folder), request.path)
    except AdvisorError as error:
        notes = (*report.proof.notes, f"Nothing was written: {error}")
        return replace(report, proof=replace(report.proof, notes=notes)), error
    return replace(report, proof=replace(report.proof, changed_files=tuple(str(path) for path in written))), None


def _keep(report: Report) -> AdvisorError | None:
    """The run folder's report.json and report.html say what was proved; returns why they cannot be written."""
    from advisor.report.html import REPORT_HTML_NAME
    from advisor.report.report_json import REPORT_NAME, write_report

    if not report.run_folder:
        return None
    try:
        write_report(report, Path(report.run_folder) / REPORT_NAME)
        emit_html(report, Path(report.run_folder) / REPORT_HTML_NAME)
    except AdvisorError as error:
        return error
    return None


def _say_what_next(result: FixResult, write: bool, target: str) -> None:
    name = result.report.analysis.target if target == "-m" else target
    if not result.patch.files:
        return
    if write:
        click.echo(
            f"advisor fix --undo {name if target != '-m' else result.report.run_folder} takes it back.", err=True
        )
    else:
        click.echo(f"Nothing was changed. advisor fix --write {name} proves it again and writes it.", err=True)
