"""`advisor analyze`: profile a script, or read a saved run, and print the report.

In: a target and options.  Out: the report; exit code 1 if `--fail-on` matched.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from advisor.commands.output import (
    EXIT_MATCHED,
    check_fail_on,
    check_report_outputs,
    console_for_people,
    emit_html,
    emit_json,
    is_matched,
    progress_line,
    show_failure,
)
from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    as_if_of,
    as_if_options,
    engine_option,
    html_option,
    json_option,
    out_option,
    report_options,
    request_of,
    run_options,
    saved_run_options,
    target_argument,
)


@click.command(
    "analyze",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Find what slows a script's input pipeline.",
)
@target_argument("TARGET")
@json_option
@html_option
@out_option
@run_options
@click.option("--to-end", is_flag=True, help="Let the script finish, in place: the files it writes are kept.")
@click.option("--ceiling", is_flag=True, help="Run again with the first batch repeated: the maximum possible speedup.")
@click.option("--headroom", is_flag=True, help="Run again without training: the speed of the pipeline alone.")
@as_if_options
@saved_run_options
@engine_option
@report_options
def command(target: str, args: tuple[str, ...], json_path: str | None, html_path: Path | None,
            quiet: bool, fail_on: tuple[str, ...], **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Run TARGET, profile a short steady part of it, and report what slows its input pipeline.

    TARGET is a script, `-m MODULE`, or a saved run: a run folder, a logdir or a .xplane.pb file, local or at a URL
    (gs://, s3://, https://). Arguments after a script are passed to the script.
    """
    from advisor.workflows.analyze import analyze, load

    check_report_outputs(json_path, html_path)
    request = request_of(target, args, options)
    as_if = as_if_of(options)
    rules, settings = load(request)
    check_fail_on(fail_on, rules)
    people = console_for_people(to_stderr=json_path == "-")
    with progress_line(is_quiet=quiet or request.show_output) as on_progress:
        if as_if is None:
            report = analyze(request, rules, settings, on_progress)
        else:
            from advisor.workflows.as_if_step import analyze_as_if

            report = analyze_as_if(as_if, request, rules, settings, on_progress)
    if not (request.is_saved_run or request.show_output or as_if is not None):
        show_failure(report)
    emit_json(report, json_path)
    emit_html(report, html_path)
    if not quiet:
        from advisor.report.report_text import print_report

        print_report(report, people)
    if not request.is_saved_run and request.out is None:
        from advisor.commands.runs import say_pruned
        from advisor.workflows.stored_runs import prune

        say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    return EXIT_MATCHED if is_matched(report, fail_on) else 0
