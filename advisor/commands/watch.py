"""`advisor watch`: run a script to its end and show how its steps and its input pipelines do meanwhile.

In: a script.  Out: the script's own output and exit code; on stderr a live table or lines, and at the end a summary with the best
suggestion; optionally files and metrics for other tools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    out_option,
    read_duration,
    request_of,
    rules_option,
    target_argument,
)

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.live.sinks import Sink, Sinks
    from advisor.live.watched_run import WatchedRun
    from advisor.model.live import LiveSample, SlowPeriod
    from advisor.model.outcome import Report
    from advisor.workflows.watch_script import OnSample

LINE_EVERY_S = 30.0
"""Default seconds between two lines where stderr is not a terminal."""
LOOPBACK = "127.0.0.1"


def _read_address(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """Convert `[HOST:]PORT`; without a host, only this machine is served."""
    if value is None:
        return None
    host, _, port = value.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise click.BadParameter(f"{value!r} is not [HOST:]PORT, such as 9090 or 0.0.0.0:9090.")
    return host.strip("[]") or LOOPBACK, int(port)


@click.command(
    "watch",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Run a script to its end and watch its input pipelines.",
)
@target_argument("SCRIPT")
@click.option(
    "--every", callback=read_duration, metavar="T", help="Time between two lines, off a terminal (default: 30s)."
)
@click.option("--no-profile", is_flag=True, help="Only count steps: no profiled window, and no suggestion at the end.")
@click.option("--jsonl", type=click.Path(path_type=Path), metavar="PATH", help="Write each sample as a line of JSON.")
@click.option("--csv", type=click.Path(path_type=Path), metavar="PATH", help="Write the samples as a CSV table.")
@click.option("--prometheus", callback=_read_address, metavar="[HOST:]PORT", help="Serve metrics for Prometheus.")
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="LOGDIR", help="Write scalars for TensorBoard.")
@out_option
@rules_option
@click.option("--quiet", is_flag=True, help="Show nothing of the advisor's own.")
def command(
    target: str,
    args: tuple[str, ...],
    every: float | None,
    no_profile: bool,
    jsonl: Path | None,
    csv: Path | None,
    prometheus: tuple[str, int] | None,
    tensorboard: Path | None,
    quiet: bool,
    **options: Any,  # noqa: ANN401
) -> int:
    """Run SCRIPT to its end, as `python SCRIPT` would, and watch its steps and input pipelines.

    The script's output and exit code are its own. The steps are counted all the time. A short window is profiled, and at the end
    the best suggestion is printed. `-m MODULE` runs a module. Arguments after the script are passed to it.
    """
    from advisor.live.watched_run import WatchedRun
    from advisor.workflows.analyze import load
    from advisor.workflows.watch_script import watch_script

    request = request_of(target, args, {**_NO_WINDOW, **options})
    if request.is_saved_run:
        raise click.UsageError(f"{target} is a saved run; watch runs a script. `advisor analyze {target}` reads it.")
    rules, settings = load(request)
    run = WatchedRun()
    console = _console()
    with _opened(jsonl, csv, prometheus, tensorboard, console, quiet) as sinks:
        try:
            with _shown(console, run, quiet, LINE_EVERY_S if every is None else every) as (show, streams):

                def on_sample(sample: LiveSample, changes: list[SlowPeriod]) -> None:
                    sinks.write(sample)
                    show(sample, changes)

                outcome = watch_script(
                    request,
                    rules,
                    settings,
                    run,
                    lambda progress: None,
                    on_sample,
                    streams=streams,
                    is_profiled=not no_profile,
                )
        except KeyboardInterrupt:
            if not quiet:
                _print_summary(console, run, sinks, None, "The run was interrupted, so there is no report.")
            raise
    if not quiet:
        _print_summary(console, run, sinks, outcome.report, outcome.problem)
        if request.out is None:
            from advisor.commands.runs import say_pruned
            from advisor.workflows.stored_runs import prune

            say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    return outcome.exit_code


_NO_WINDOW = {"steps": None, "warmup": None, "seconds": None, "allow": (), "show_output": False}


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def _opened(
    jsonl: Path | None,
    csv: Path | None,
    prometheus: tuple[str, int] | None,
    tensorboard: Path | None,
    console: Console,
    quiet: bool,
) -> Iterator[Sinks]:
    """Open what the options name; what was opened is closed again if another one fails."""
    from advisor.live import sinks as kinds

    opened: list[Sink] = []
    with kinds.Sinks(opened) as sinks:
        if jsonl is not None:
            opened.append(kinds.JsonLines(jsonl))
        if csv is not None:
            opened.append(kinds.CsvRows(csv))
        if prometheus is not None:
            endpoint = kinds.PrometheusEndpoint(*prometheus)
            opened.append(endpoint)
            if not quiet:
                console.print(f"Metrics for Prometheus: http://{prometheus[0]}:{endpoint.port}/metrics", soft_wrap=True)
        if tensorboard is not None:
            opened.append(kinds.TensorBoardScalars(tensorboard))
        yield sinks


@contextlib.contextmanager
def _shown(
    console: Console, run: WatchedRun, quiet: bool, every_s: float
) -> Iterator[tuple[OnSample, tuple[int, int] | None]]:
    """Show the run: a live table on a terminal, else a line now and then and one for each slow period.

    Yields:
        What to call with each sample, and where the script's output goes; None for stdout and stderr of this process.
    """
    from advisor.live.view import Throttle, describe_period, line, table

    if quiet:
        yield (lambda sample, changes: None), None
        return
    if console.is_terminal and not console.is_dumb_terminal:
        from rich.live import Live

        from advisor.live.script_output import printed_above

        with (
            Live(table(run), console=console, transient=True, auto_refresh=False) as live,
            printed_above(console) as out,
        ):
            yield (lambda sample, changes: live.update(table(run), refresh=True)), out
        return
    throttle = Throttle(every_s)
    throttle.is_due()

    def show(sample: LiveSample, changes: list[SlowPeriod]) -> None:
        for period in changes:
            console.print(f"advisor: {describe_period(period, run)}", soft_wrap=True)
        if throttle.is_due():
            console.print(f"advisor: {line(run)}", soft_wrap=True)

    yield show, None


def _print_summary(console: Console, run: WatchedRun, sinks: Sinks, report: Report | None, problem: str) -> None:
    from rich.text import Text

    from advisor.live.view import summary
    from advisor.report.places import clean, display_path

    console.print()
    if run.latest is not None:
        for text in summary(run):
            console.print(Text(text), soft_wrap=not console.is_terminal)
    for warning in sinks.warnings:
        console.print(Text(warning, "yellow"), soft_wrap=True)
    if problem:
        console.print(Text(clean(problem), "yellow"), soft_wrap=True)
    if report is None:
        return
    console.print(Text(clean(report.analysis.verdict.sentence), "bold"), soft_wrap=not console.is_terminal)
    best = next((finding for finding in report.findings), None)
    if best is not None:
        where = f" ({display_path(best.site.file)}:{best.site.line})" if best.site is not None else ""
        console.print(Text(clean(f"{best.title}{where}: {best.because}")), soft_wrap=not console.is_terminal)
    folder = clean(display_path(report.run_folder))
    console.print(Text(f"The whole report: advisor analyze {folder}", "dim"), soft_wrap=True)
