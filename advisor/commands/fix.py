"""`advisor fix`: prove fixes on the user's script, print them, and write them only with `--write`.

In: a script and options.  Out: the report; with `--fail-on`, exit code 0, 1 or 4 (`exit_code_of`).
"""

from __future__ import annotations

import shlex
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
    as_if_of,
    as_if_options,
    html_option,
    json_option,
    out_option,
    read_duration,
    report_options,
    request_of,
    run_options,
    target_argument,
)
from advisor.model.errors import AdvisorError
from advisor.model.proof_result import TRAINING
from advisor.model.termination import CtrlC, is_interrupt

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings
    from advisor.workflows.fix_request import FixRequest, FixResult

DEFAULT_BUDGET = "10min"
EXIT_PIPELINE_ALONE = 4
_OWN_OPTIONS = ("--write", "--undo", "--only", "--pipeline-only", "--budget")
"""Options of this command that are passed to the script without an effect here if they follow it by mistake."""


@click.command(
    "fix",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Prove fixes on a script; write them with --write.",
)
@target_argument("SCRIPT")
@click.option("--write", is_flag=True, help="Write the proved changes into the source; --undo restores the backup.")
@click.option("--undo", is_flag=True, help="Revert the last --write; nothing is run.")
@click.option("--only", multiple=True, metavar="RULE", help="Try only the fixes of this rule.")
@click.option(
    "--budget",
    callback=read_duration,
    show_default=DEFAULT_BUDGET,
    metavar="T",
    help="Time limit for the whole command. If it is not given, a result that is not clear after 5min is left undecided.",
)
@click.option("--pipeline-only", is_flag=True, help="Prove on the input pipeline alone, without running the training.")
@as_if_options
@json_option
@html_option
@out_option
@run_options
@report_options
def command(target: str, args: tuple[str, ...], json_path: str | None, html_path: Path | None, quiet: bool,
            fail_on: tuple[str, ...], write: bool,
            undo: bool, only: tuple[str, ...], budget: float | None, pipeline_only: bool, **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Run SCRIPT, try changes to its input pipeline, and keep those that are measured to be faster.

    SCRIPT is a script or `-m MODULE`; the arguments after it are passed to it. No file is changed without --write.
    """
    from advisor.commands.runs import say_pruned
    from advisor.host.calibration.proof import DEFAULT_BUDGET_S, TRIALS_S, USUAL_S
    from advisor.prove.budget import check_budget
    from advisor.workflows.analyze import load
    from advisor.workflows.fix_request import FixRequest, announcement, check_writable
    from advisor.workflows.stored_runs import prune

    if write and undo:
        raise click.UsageError("--write and --undo are mutually exclusive.")
    if undo:
        return _undo(target, args, quiet)
    check_report_outputs(json_path, html_path)
    request = request_of(target, args, options)
    if request.is_saved_run:
        raise click.UsageError(f"{target} is a saved run; `advisor fix` needs the script, which it runs.")
    as_if = as_if_of(options)
    rules, settings = load(request)
    check_fail_on(fail_on, rules)
    check_rule_names("--only", only, [loaded.id for loaded in rules])
    if only:  # another rule may propose the same change, and the report would attribute it to that rule
        rules = [loaded for loaded in rules if loaded.id in only]
    if budget is None:
        budget_s, trials_s, usual_s = DEFAULT_BUDGET_S.value, TRIALS_S.value, USUAL_S.value
    else:
        budget_s, trials_s, usual_s = budget, None, None
    ctrl_c = CtrlC()
    fix_request = FixRequest(
        request,
        budget_s,
        trials_s,
        usual_s,
        only,
        pipeline_only,
        is_to_be_written=write,
        as_if=as_if,
        on_concluding=ctrl_c.hold,
    )
    if not quiet:
        _note_late_options(args)
    check_budget(budget_s)
    check_writable(fix_request)
    if not quiet:
        click.echo(announcement(fix_request), err=True)
    with ctrl_c:
        result = _fix(fix_request, rules, settings, quiet)
        is_stopped = result.is_interrupted or ctrl_c.has_come
        report, refusal = _write(result, fix_request) if write and not is_stopped else (result.report, None)
        problem = _keep(report)
        emit_json(report, json_path)
        emit_html(report, html_path)
        if not quiet:
            from advisor.report.proof_text import print_proof

            print_proof(report, console_for_people(to_stderr=json_path == "-"))
            if write and result.patch.files and refusal is None and not is_stopped:
                name = request.path if request.path is not None else report.run_folder
                click.echo(f"To revert: {shlex.join(['advisor', 'fix', '--undo', str(name)])}", err=True)
        if request.out is None:
            say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    if result.problem and not problem:
        problem = AdvisorError(result.problem)
    if refusal or problem:  # raised only now, so that the proof, which took minutes, is shown first
        raise refusal or problem or AssertionError
    if is_stopped or ctrl_c.has_come:
        raise KeyboardInterrupt
    return exit_code_of(report, fail_on)


def _fix(request: FixRequest, rules: Sequence[LoadedRule], settings: Settings, quiet: bool) -> FixResult:
    """Run all phases; if Ctrl-C ends them before there is a result, say how to go on."""
    from advisor.prove.ends.early_ends import interrupted_before_trials
    from advisor.workflows.fix import fix

    try:
        with progress_bar(quiet or request.script.show_output, request.budget_s) as on_progress:
            return fix(request, rules, settings, on_progress)
    except KeyboardInterrupt as error:
        if is_interrupt(error) and not quiet:
            step = interrupted_before_trials(request.commands)
            click.echo(f"{step.sentence} Next: {step.command}", err=True)
        raise


def exit_code_of(report: Report, fail_on: Sequence[str]) -> int:
    """Return the exit code that `--fail-on` gives to the report.

    Returns:
        0 if nothing matched or the kept changes are proved on the training; 4 if it matched and they are proved on the
        pipeline alone; 1 if it matched and no permitted change is proved faster.
    """
    if not is_matched(report, fail_on):
        return 0
    if report.proof is None or not any(fix.is_applied for fix in report.fixes):
        return EXIT_MATCHED
    return 0 if report.proof.proved_on == TRAINING else EXIT_PIPELINE_ALONE


def _note_late_options(args: Sequence[str]) -> None:
    """Say that an option after the script name goes to the script."""
    late = [name for name in (arg.partition("=")[0] for arg in args) if name in _OWN_OPTIONS]
    if late:
        click.echo(
            f"Note: {late[0]} follows the script, so it is passed to it; options of advisor precede it.", err=True
        )


def _undo(target: str, args: tuple[str, ...], quiet: bool) -> int:
    from advisor.rewrite.apply.undo import undo

    if target == "-m":
        raise click.UsageError("--undo takes the script's file or the run folder, not a module's name.")
    if args:
        raise click.UsageError(f"--undo takes no script arguments, as nothing is run (got {args[0]}).")
    for path in undo(Path(target)):
        if not quiet:
            click.echo(f"Restored {path}.")
    return 0


def _write(result: FixResult, request: FixRequest) -> tuple[Report, AdvisorError | None]:
    """Apply the proved patch to the user's files, with a backup in the run folder.

    Returns:
        The updated report, and the error if nothing was written.
    """
    report = result.report
    if not result.patch.files or report.proof is None:
        return report, None
    from advisor.rewrite.apply.write import write_patch

    try:
        if result.changed_meanwhile is not None:
            raise AdvisorError(
                f"{result.changed_meanwhile} has changed since the script was started, so no file was changed. Next: "
                f"{request.commands.again()}"
            )
        written = write_patch(result.patch, Path(report.run_folder), request.script.path)
    except AdvisorError as error:
        notes = (*report.proof.notes, f"Nothing was written: {error}")
        return replace(report, proof=replace(report.proof, notes=notes)), error
    return replace(report, proof=replace(report.proof, changed_files=tuple(str(path) for path in written))), None


def _keep(report: Report) -> AdvisorError | None:
    """Write the proof into the run folder's report.json and report.html; return the error if that fails."""
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
