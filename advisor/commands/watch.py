"""`advisor watch`: run a script to its end and show how its steps and its input pipelines do meanwhile, or follow a running job.

In: a script, or the address of a profiler server.  Out: the script's own output and exit code; on stderr a live table or lines,
and at the end a summary with the best suggestion; optionally files and metrics for other tools.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
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
)

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.live.sinks import Sink, Sinks
    from advisor.live.watched_run import Change
    from advisor.live.window_plan import WindowPlan
    from advisor.model.live import LiveSample

LINE_EVERY_S = 30.0
"""Default seconds between two lines where stderr is not a terminal."""
NEVER = "never"
_ONLY_SCRIPT = ("windows_every", "no_profile", "jsonl", "csv", "prometheus", "tensorboard", "log", "out", "rules")
_ONLY_JOB = ("duration", "source")


def _read_address(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, int] | None:
    """Convert `[HOST:]PORT`; without a host, only this machine is served."""
    from advisor.live.metric_sinks import parse_address

    try:
        return None if value is None else parse_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _read_interval(ctx: click.Context, parameter: click.Parameter, value: str | None) -> float | str | None:
    """Convert a duration of at least a minute, or `never`."""
    from advisor.host.calibration.live import MIN_WINDOW_EVERY_S

    if value == NEVER:
        return NEVER
    seconds = read_duration(ctx, parameter, value)
    if seconds is not None and seconds < MIN_WINDOW_EVERY_S.value:
        raise click.BadParameter(
            f"{value!r} is too often: a window takes seconds of training; name {MIN_WINDOW_EVERY_S.value:g}s or more."
        )
    return seconds


@click.command(
    "watch",
    cls=ScriptCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Run a script to its end and watch its input pipelines.",
)
@click.argument("target", metavar="SCRIPT", required=False)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option(
    "--every",
    callback=read_duration,
    metavar="T",
    help="Time between two lines, off a terminal (default: 30s); with --attach, between two captures (default: 1min).",
)
@click.option(
    "--windows-every",
    callback=_read_interval,
    metavar="T",
    help="Time between two profiled windows (default: 10min); never: only when steps wait longer than before.",
)
@click.option("--no-profile", is_flag=True, help="Only count steps: no profiled window, and no suggestion at the end.")
@click.option("--jsonl", type=click.Path(path_type=Path), metavar="PATH", help="Write each sample as a line of JSON.")
@click.option("--csv", type=click.Path(path_type=Path), metavar="PATH", help="Write the samples as a CSV table.")
@click.option("--prometheus", callback=_read_address, metavar="[HOST:]PORT", help="Serve metrics for Prometheus.")
@click.option("--tensorboard", type=click.Path(path_type=Path), metavar="LOGDIR", help="Write scalars for TensorBoard.")
@click.option(
    "--log",
    multiple=True,
    type=click.Choice(("wandb", "mlflow")),
    help="Start a run of this experiment tracker and log the samples to it.",
)
@click.option("--attach", metavar="HOST:PORT", help="Follow a running job through its profiler server instead.")
@click.option(
    "--duration", callback=read_duration, metavar="T", help="With --attach: length of a capture (default: 1s)."
)
@click.option(
    "--source",
    type=click.Path(path_type=Path),
    metavar="SCRIPT",
    help="With --attach: script that builds the pipelines.",
)
@out_option
@rules_option
@click.option("--quiet", is_flag=True, help="Show nothing of the advisor's own.")
def command(target: str | None, args: tuple[str, ...], quiet: bool, **options: Any) -> int:  # noqa: ANN401
    """Run SCRIPT to its end, as `python SCRIPT` would, and watch its steps and input pipelines.

    The script's output and exit code are its own. The steps are counted all the time. Short windows are profiled from time to
    time and when steps wait longer for input, and at the end the best suggestion is printed. `-m MODULE` runs a module. Arguments
    after the script are passed to it.

    With `--attach`, no script is run: a job that has called tf.profiler.experimental.server.start(PORT) is profiled for a moment
    from time to time, until it ends.
    """
    if options["attach"] is None:
        if target is None:
            raise click.UsageError("Name a script to run, or a running job with --attach HOST:PORT.")
        _refuse(options, _ONLY_JOB, "applies only to a running job; add --attach HOST:PORT.")
        return _watch_script(target, args, quiet, options)
    if target is not None:
        raise click.UsageError(f"--attach follows a running job, so {target} is not run; leave it out.")
    _refuse(options, _ONLY_SCRIPT, "applies only to a script, which --attach does not run.")
    return _follow_job(quiet, options)


def _refuse(options: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    name = next((name for name in names if options[name] not in (None, False, ())), None)
    if name is not None:
        raise click.UsageError(f"--{name.replace('_', '-')} {why}")


def _watch_script(target: str, args: tuple[str, ...], quiet: bool, options: Mapping[str, Any]) -> int:
    from advisor.live.display import print_summary, shown
    from advisor.live.watched_run import WatchedRun
    from advisor.workflows.analyze import load
    from advisor.workflows.watch_script import watch_script

    request = request_of(target, args, {**_NO_WINDOW, **options, "source": None})
    if request.is_saved_run:
        raise click.UsageError(f"{target} is a saved run; watch runs a script. `advisor analyze {target}` reads it.")
    if options["no_profile"] and options["windows_every"] is not None:
        raise click.UsageError("--windows-every needs the profiler; remove --no-profile.")
    rules, settings = load(request)
    run = WatchedRun()
    console = _console()
    every_s = LINE_EVERY_S if options["every"] is None else options["every"]
    name = request.module or (request.path.name if request.path is not None else "")
    with _opened(options, name, console, quiet) as sinks:
        try:
            with shown(console, run, quiet, every_s) as (show, streams):

                def on_sample(sample: LiveSample, changes: list[Change]) -> None:
                    sinks.write(sample, changes)
                    show(sample, changes)

                outcome = watch_script(
                    request,
                    rules,
                    settings,
                    run,
                    lambda progress: None,
                    on_sample,
                    streams=streams,
                    is_profiled=not options["no_profile"],
                    plan=_plan(options["windows_every"]),
                )
        except KeyboardInterrupt:
            if not quiet:
                print_summary(console, run, sinks.warnings, problem="The run was interrupted, so there is no report.")
            raise
    if not quiet:
        print_summary(console, run, sinks.warnings, outcome.report, outcome.problem)
        if request.out is None:
            from advisor.commands.runs import say_pruned
            from advisor.workflows.stored_runs import prune

            say_pruned(prune(settings.keep_runs, settings.keep_runs_bytes), quiet)
    return outcome.exit_code


_NO_WINDOW = {"steps": None, "warmup": None, "seconds": None, "allow": (), "show_output": False}


def _plan(windows_every: float | str | None) -> WindowPlan:
    from advisor.host.calibration.live import WINDOW_EVERY_S
    from advisor.live.window_plan import WindowPlan

    if isinstance(windows_every, str):
        return WindowPlan(every_s=None)
    return WindowPlan(WINDOW_EVERY_S.value if windows_every is None else windows_every)


def _follow_job(quiet: bool, options: Mapping[str, Any]) -> int:
    from advisor.host.calibration.live import CAPTURE_EVERY_S, CAPTURE_S
    from advisor.workflows.watch_job import JobToFollow, follow

    if options["source"] is not None and not options["source"].is_file():
        raise click.UsageError(f"--source {options['source']}: no such script.")
    every_s, duration_s = options["every"], options["duration"]
    job = JobToFollow(
        options["attach"],
        CAPTURE_EVERY_S.value if every_s is None else every_s,
        CAPTURE_S.value if duration_s is None else duration_s,
        options["source"],
    )
    if job.every_s < job.duration_s:
        raise click.UsageError("--every must not be shorter than --duration.")
    return follow(job, _console(), quiet)


def _console() -> Console:
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def _opened(options: Mapping[str, Any], name: str, console: Console, quiet: bool) -> Iterator[Sinks]:
    """Open what the options name; what was opened is closed again if another one fails."""
    from advisor.live.sinks import Sinks

    opened: list[Sink] = []
    with Sinks(opened) as sinks:
        if options["jsonl"] is not None or options["csv"] is not None:
            from advisor.live.file_sinks import CsvRows, JsonLines

            if options["jsonl"] is not None:
                opened.append(JsonLines(options["jsonl"]))
            if options["csv"] is not None:
                opened.append(CsvRows(options["csv"]))
        if options["prometheus"] is not None or options["tensorboard"] is not None:
            from advisor.live.metric_sinks import PrometheusEndpoint, TensorBoardScalars

            if options["prometheus"] is not None:
                host, port = options["prometheus"]
                endpoint = PrometheusEndpoint(host, port)
                opened.append(endpoint)
                if not quiet:
                    console.print(f"Metrics for Prometheus: http://{host}:{endpoint.port}/metrics", soft_wrap=True)
            if options["tensorboard"] is not None:
                opened.append(TensorBoardScalars(options["tensorboard"]))
        for tracker in dict.fromkeys(options["log"]):
            from advisor.live.tracker_sinks import open_tracker

            opened.append(open_tracker(tracker, f"--log {tracker}", run_name=f"input pipeline of {name}"))
        yield sinks
