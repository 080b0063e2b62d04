"""`advisor capture`: profile running jobs (sampling mode) and analyse the profile.

In: addresses of profiler servers.  Out: a logdir with a new run, and the report.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

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
)
from advisor.commands.script_target import html_option, json_option, read_duration, rules_option

if TYPE_CHECKING:
    from advisor.capture.remote.sampling import Sampled
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings
    from advisor.workflows.analyze import OnProgress


@click.command("capture", short_help="Profile running jobs (sampling mode).")
@click.argument("addresses", metavar="grpc://HOST:PORT[,...]", nargs=-1, required=True)
@click.option(
    "--duration", default="2s", callback=read_duration, metavar="S", help="How long to profile (default: 2 s)."
)
@click.option("--delay", callback=read_duration, metavar="S", help="Time to wait before profiling.")
@click.option(
    "--retries", default=3, show_default=True, type=click.IntRange(0, 100), help="Attempts after a failed one."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Logdir to add the run to (default: a new one)."
)
@click.option(
    "--host-tracer-level", default=2, show_default=True, type=click.IntRange(1, 3), help="CPU events; 1 omits tf.data."
)
@click.option(
    "--python-tracer-level", default=0, show_default=True, type=click.IntRange(0, 1), help="1 adds Python calls."
)
@click.option(
    "--device-tracer-level", default=1, show_default=True, type=click.IntRange(0, 1), help="0 omits device events."
)
@click.option("--no-report", is_flag=True, help="Save the profile and print its folder.")
@json_option
@html_option
@rules_option
@click.option("--source", type=click.Path(path_type=Path), metavar="SCRIPT", help="Script that builds the pipelines.")
@click.option("--fail-on", multiple=True, metavar="RULE|any|input-bound", help="Exit with 1 if this is found.")
@click.option("--quiet", is_flag=True, help="Print neither report nor progress.")
def command(
    addresses: tuple[str, ...],
    duration: float,
    delay: float | None,
    retries: int,
    out: Path | None,
    host_tracer_level: int,
    python_tracer_level: int,
    device_tracer_level: int,
    no_report: bool,
    json_path: str | None,
    html_path: Path | None,
    rules: tuple[Path, ...],
    source: Path | None,
    fail_on: tuple[str, ...],
    quiet: bool,
) -> int:
    """Profile running jobs for a few seconds, and report what slows their input pipelines.

    Each job must call tf.profiler.experimental.server.start(PORT) before it trains. Several workers are profiled at the
    same time. TensorFlow need not be installed on this machine.
    """
    from advisor.capture.remote.client import TracerLevels
    from advisor.capture.remote.sampling import SamplingRequest, parse_addresses, sample
    from advisor.model.run_folder import default_run_folder
    from advisor.workflows.analyze import Request, load

    needs_report = {"--json": json_path, "--html": html_path, "--fail-on": fail_on, "--source": source}
    conflicting = next((name for name, value in needs_report.items() if value), None)
    if no_report and conflicting:
        raise click.UsageError(f"{conflicting} needs a report; remove --no-report.")
    if source is not None and not source.is_file():
        raise click.UsageError(f"--source {source}: no such script.")
    check_report_outputs(json_path, html_path)
    workers = parse_addresses(",".join(addresses))
    loaded, settings = load(Request(rule_directories=rules, is_only_read=True))
    check_fail_on(fail_on, loaded)
    request = SamplingRequest(
        addresses=workers,
        out=out or default_run_folder(f"capture-{workers[0].replace(':', '-').strip('[]')}"),
        duration_s=duration,
        delay_s=delay or 0.0,
        retries=retries,
        levels=TracerLevels(host_tracer_level, python_tracer_level, device_tracer_level),
    )
    with progress_line(is_quiet=quiet) as on_progress:
        sampled = sample(request, on_progress)
    if no_report:
        for warning in sampled.warnings:
            click.echo(f"warning: {warning}", err=True)
        click.echo(sampled.logdir)
        return 0
    with progress_line(is_quiet=quiet) as on_progress:
        report = _analyze(sampled, workers, loaded, settings, source, on_progress)
    emit_json(report, json_path)
    emit_html(report, html_path)
    if not quiet:
        from advisor.report.report_text import print_report

        print_report(report, console_for_people(to_stderr=json_path == "-"))
        click.echo(f"Profile: {sampled.logdir}", err=json_path == "-")
    return EXIT_MATCHED if is_matched(report, fail_on) else 0


def _analyze(
    sampled: Sampled,
    workers: tuple[str, ...],
    rules: list[LoadedRule],
    settings: Settings,
    source: Path | None,
    on_progress: OnProgress,
) -> Report:
    """Analyse the new run; write report.json and report.html into the logdir if the logdir is new."""
    from advisor.model.errors import AdvisorError
    from advisor.report.html import REPORT_HTML_NAME
    from advisor.report.report_json import REPORT_NAME, write_report
    from advisor.workflows.analyze import Choice, analyze_run

    try:
        report = analyze_run(sampled.logdir, rules, settings, Choice(sampled.run, (), source), on_progress)
    except AdvisorError as error:
        raise AdvisorError(f"{error} The profile is kept in {sampled.logdir}.") from None
    report = replace(
        report,
        analysis=replace(report.analysis, target=",".join(f"grpc://{worker}" for worker in workers)),
        warnings=(*sampled.warnings, *report.warnings),
    )
    if {path.name for path in sampled.logdir.iterdir()} == {"plugins"}:
        write_report(report, sampled.logdir / REPORT_NAME)
        emit_html(report, sampled.logdir / REPORT_HTML_NAME)
    return report
