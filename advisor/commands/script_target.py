"""Shared by the commands that run a script: TARGET and its arguments, the options of a run, and the `Request` built from them.

In: the command line.  Out: a click command class, decorators, `request_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from advisor.workflows.analyze import Request
    from advisor.workflows.as_if_step import AsIf

ALLOWABLE = ("rerandomized", "reordered", "numerics")
MOST_STEP_S = 30.0
"""Longest imagined step in seconds: a held script that is silent during a few of them counts as hanging (`SILENCE_S`)."""
SCRIPT_SETTINGS = {"allow_interspersed_args": False}
"""`context_settings` of commands whose target may be a script: options of the command precede the script."""
_ONLY_FOR_SAVED_RUNS = ("run", "hosts", "source", "engine")
_ONLY_FOR_SCRIPTS = ("steps", "warmup", "seconds", "to_end", "ceiling", "headroom", "show_output", "in_place", "as_if_step",
                     "as_if_speedup")  # fmt: skip

Function = TypeVar("Function", bound=Callable[..., Any])


class ScriptCommand(click.Command):
    """Command that passes every argument after the script, or after `-m module`, to the script."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `--` before `-m`, which click would parse as an option."""
        with_value = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] not in ("-", "--"):
            if args[index] == "-m":
                args = [*args[:index], "--", *args[index:]]
                break
            index += 2 if args[index] in with_value else 1
        return super().parse_args(ctx, args)


def read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Option callback that parses a duration such as `30`, `500ms` or `2min` to seconds.

    Args:
        ctx: The click context; not used.
        param: The click parameter; not used.
        value: The text of the option; None if it is not passed.

    Returns:
        Seconds; None if the option is not passed.

    Raises:
        BadParameter: The text is no duration.
    """
    from advisor.model.units import parse_seconds

    try:
        return None if value is None else parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def rules_option(command: Function) -> Function:
    """Add the repeatable option `--rules DIR`."""
    return click.option(
        "--rules", "rules", multiple=True, type=click.Path(path_type=Path), metavar="DIR",
        help="Folder with additional rules.",
    )(command)  # fmt: skip


def target_argument(name: str) -> Callable[[Function], Function]:
    """Add the target, called `name` in the help text, and the arguments that follow it."""

    def decorate(command: Function) -> Function:
        command = click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")(command)
        return click.argument("target", metavar=name)(command)

    return decorate


def run_options(command: Function) -> Function:
    """Add the options of profiled runs: window, rules, and permitted effects on the data."""
    return rules_option(window_options(command))


def window_options(command: Function) -> Function:
    """Add the options of runs: window, and permitted effects on the data."""
    options = (
        click.option(
            "--allow", multiple=True, type=click.Choice(ALLOWABLE), help="Permitted effect on the data, beyond exact."
        ),
        click.option(
            "--steps", type=click.IntRange(min=1), metavar="N", help="Steps to profile (default: until stable)."
        ),
        click.option("--warmup", type=click.IntRange(min=0), metavar="N", help="Warm-up steps (default: adaptive)."),
        click.option("--in-place", is_flag=True, help="Let the runs write to the real files; no write is discarded."),
        click.option("--seconds", callback=read_duration, metavar="S", help="Longest profile, such as 30 or 2min."),
    )
    for option in reversed(options):
        command = option(command)
    return command


out_option = click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder (default: a new one)."
)


engine_option = click.option(
    "--engine", metavar="dask://HOST:PORT", help="Analyse the hosts of a run on the workers of this Dask scheduler."
)


def saved_run_options(command: Function) -> Function:
    """Add the options that select part of a saved run, and the script that built its pipelines."""
    options = (
        click.option("--run", metavar="RUN", help="Run to read from a logdir with several (default: the newest)."),
        click.option("--host", "hosts", multiple=True, metavar="HOST", help="Read only this host of several."),
        click.option(
            "--source",
            type=click.Path(path_type=Path),
            metavar="SCRIPT",
            help="Script that builds the pipelines of a profile.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def report_options(command: Function) -> Function:
    """Add the options for report output and its effect on the exit code."""
    options = (
        click.option("--fail-on", multiple=True, metavar="RULE|any|input-bound", help="Exit with 1 if this is found."),
        click.option("--quiet", is_flag=True, help="Print neither report nor progress."),
        click.option("--show-output", is_flag=True, help="Show the script's output on stderr."),
    )
    for option in reversed(options):
        command = option(command)
    return command


json_option = click.option("--json", "json_path", metavar="PATH|-", help="Write the report as JSON; - for stdout.")


def as_if_options(command: Function) -> Function:
    """Add the options that replace the training step by a wait."""
    options = (
        click.option(
            "--as-if-step",
            callback=read_duration,
            metavar="T",
            help="Replace each training step by a wait of T, such as 5ms, that takes no core; the model is not run.",
        ),
        click.option(
            "--as-if-speedup",
            type=click.FloatRange(min=0, min_open=True),
            metavar="X",
            help="The same, with a step X times as fast as measured here.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def as_if_of(options: Mapping[str, Any]) -> AsIf | None:
    """Build the imagined step from the options above; None if none is given.

    Raises:
        UsageError: Both are given.
    """
    step_s, speedup = options.get("as_if_step"), options.get("as_if_speedup")
    if step_s is None and speedup is None:
        return None
    if step_s is not None and speedup is not None:
        raise click.UsageError("--as-if-step and --as-if-speedup are mutually exclusive.")
    for name in ("ceiling", "headroom", "to_end"):
        if options.get(name):
            raise click.UsageError(f"--{name.replace('_', '-')} needs the training, which an imagined step replaces.")
    for name in ("steps", "warmup", "seconds"):
        if options.get(name) is not None:
            raise click.UsageError(
                f"--{name} has no effect on an imagined step, whose window is chosen by the advisor."
            )
    if step_s is not None and step_s > MOST_STEP_S:
        raise click.UsageError(f"--as-if-step is at most {MOST_STEP_S:g} s.")
    from advisor.workflows.as_if_step import AsIf

    return AsIf(step_s, speedup)


html_option = click.option(
    "--html", "html_path", type=click.Path(path_type=Path), metavar="PATH", help="Write the report as one HTML file."
)


def request_of(target: str, args: tuple[str, ...], options: Mapping[str, Any]) -> Request:
    """Build the request for a target, its arguments and the options above.

    Args:
        target: The script, `-m`, or the saved run.
        args: The arguments that follow the target.
        options: Values of the options by parameter name; options that a command lacks get their defaults.

    Raises:
        UsageError: An option does not apply to this kind of target.
    """
    from advisor.model.locations import is_remote, locate
    from advisor.workflows.analyze import Choice, Request

    module = None
    if target == "-m":
        if not args:
            raise click.UsageError("-m needs a module name.")
        module, args = args[0], args[1:]
    request = Request(
        path=None if module else locate(target),
        module=module,
        args=args,
        out=options.get("out"),
        rule_directories=options["rules"],
        allow=options["allow"],
        steps=options["steps"],
        warmup=options["warmup"],
        seconds=options["seconds"],
        to_end=options.get("to_end", False),
        show_output=options["show_output"],
        in_place=options.get("in_place", False),
        with_ceiling=options.get("ceiling", False),
        with_headroom=options.get("headroom", False),
        choice=Choice(options.get("run"), tuple(options.get("hosts", ())), options.get("source")),
        engine=options.get("engine"),
    )
    if not request.is_saved_run:
        misplaced = next((name for name in _ONLY_FOR_SAVED_RUNS if options.get(name)), None)
        if misplaced is not None:
            raise click.UsageError(f"--{misplaced.removesuffix('s')} applies only to saved runs; {target} is a script.")
    elif request.path is not None and (is_remote(request.path) or request.path.exists()):
        misplaced = next((name for name in _ONLY_FOR_SCRIPTS if options.get(name) not in (None, False)), None)
        if misplaced is not None:
            raise click.UsageError(
                f"--{misplaced.replace('_', '-')} applies only to scripts; {target} is a saved run and is not run again."
            )
        if args:
            raise click.UsageError(
                f"{target} is a saved run and takes no arguments (got {args[0]}); options must precede it."
            )
    return request
