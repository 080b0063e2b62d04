"""What commands that run a script share: TARGET and its arguments, the options of a run, and the `Request` made of them.

In: the command line.  Out: a click command class, decorators, `request_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from advisor.workflows.analyze import Request

ALLOWABLE = ("rerandomized", "reordered", "numerics")
SCRIPT_SETTINGS = {"allow_interspersed_args": False}
"""`context_settings` of commands whose target may be a script: options of ours stand before it."""
_ONLY_FOR_SAVED_RUNS = ("run", "hosts", "source")
_ONLY_FOR_SCRIPTS = ("steps", "warmup", "seconds", "to_end", "ceiling", "show_output", "in_place")

Function = TypeVar("Function", bound=Callable[..., Any])


class ScriptCommand(click.Command):
    """All after the script, or after `-m module`, belongs to the script, whatever it looks like."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `--` before `-m`, which click would take for an option."""
        with_value = {name for p in self.params if isinstance(p, click.Option) and not p.is_flag for name in p.opts}
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] not in ("-", "--"):
            if args[index] == "-m":
                args = [*args[:index], "--", *args[index:]]
                break
            index += 2 if args[index] in with_value else 1
        return super().parse_args(ctx, args)


def read_duration(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Option callback: seconds of a duration such as `30`, `500ms`, `2min`."""
    from advisor.model.units import parse_seconds

    try:
        return None if value is None else parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def rules_option(command: Function) -> Function:
    """`--rules DIR`, repeatable."""
    return click.option(
        "--rules", "rules", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of more rules."
    )(command)


def target_argument(name: str) -> Callable[[Function], Function]:
    """The target, called `name` in the help, and all that follows it."""

    def decorate(command: Function) -> Function:
        command = click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")(command)
        return click.argument("target", metavar=name)(command)

    return decorate


def run_options(command: Function) -> Function:
    """The options of a watched run: where it is kept, its window, which rules are asked, what fixes may do to the data."""
    options = (
        click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder (default: a new one)."),
        rules_option,
        click.option(
            "--allow", multiple=True, type=click.Choice(ALLOWABLE), help="What fixes may do to the data beyond exact."
        ),
        click.option(
            "--steps", type=click.IntRange(min=1), metavar="N", help="Steps to profile (default: until stable)."
        ),
        click.option(
            "--warmup", type=click.IntRange(min=0), metavar="N", help="Steps before that (default: adaptive)."
        ),
        click.option("--in-place", is_flag=True, help="Let the runs write to the real files; nothing is thrown away."),
        click.option("--seconds", callback=read_duration, metavar="S", help="Longest profile, such as 30 or 2min."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def saved_run_options(command: Function) -> Function:
    """What of a saved run is read, and whose calls its iterators are."""
    options = (
        click.option("--run", metavar="RUN", help="Of a logdir with several runs this one (default: the newest)."),
        click.option("--host", "hosts", multiple=True, metavar="HOST", help="Of several hosts only this one."),
        click.option(
            "--source",
            type=click.Path(path_type=Path),
            metavar="SCRIPT",
            help="A profile's calls stand in this script.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def report_options(command: Function) -> Function:
    """Where the report goes and what it does to the exit code."""
    options = (
        click.option("--fail-on", multiple=True, metavar="RULE|any|input-bound", help="Exit with 1 if this is found."),
        click.option("--quiet", is_flag=True, help="Print no report and no progress."),
        click.option("--show-output", is_flag=True, help="Show the script's own output, on stderr."),
    )
    for option in reversed(options):
        command = option(command)
    return command


json_option = click.option("--json", "json_path", metavar="PATH|-", help="Write the report as JSON; - for stdout.")


html_option = click.option(
    "--html", "html_path", type=click.Path(path_type=Path), metavar="PATH", help="Write the report as one HTML file."
)


def request_of(target: str, args: tuple[str, ...], options: Mapping[str, Any]) -> Request:
    """The request of a target, what follows it and the options above (those that a command lacks: their defaults).

    Raises UsageError for options that a saved run has no use for.
    """
    from advisor.model.locations import is_remote, locate
    from advisor.workflows.analyze import Choice, Request

    module = None
    if target == "-m":
        if not args:
            raise click.UsageError("-m needs the name of a module.")
        module, args = args[0], args[1:]
    request = Request(
        path=None if module else locate(target),
        module=module,
        args=args,
        out=options["out"],
        rule_directories=options["rules"],
        allow=options["allow"],
        steps=options["steps"],
        warmup=options["warmup"],
        seconds=options["seconds"],
        to_end=options.get("to_end", False),
        show_output=options["show_output"],
        in_place=options.get("in_place", False),
        with_ceiling=options.get("ceiling", False),
        choice=Choice(options.get("run"), tuple(options.get("hosts", ())), options.get("source")),
    )
    if not request.is_saved_run:
        useless = next((name for name in _ONLY_FOR_SAVED_RUNS if options.get(name)), None)
        if useless is not None:
            raise click.UsageError(
                f"--{useless.removesuffix('s')} is for saved runs; {target} is a script, which is run."
            )
    elif request.path is not None and (is_remote(request.path) or request.path.exists()):
        useless = next((name for name in _ONLY_FOR_SCRIPTS if options.get(name) not in (None, False)), None)
        if useless is not None:
            raise click.UsageError(
                f"--{useless.replace('_', '-')} is for scripts; {target} is a saved run, nothing is run again."
            )
        if args:
            raise click.UsageError(
                f"{target} is a saved run and takes no arguments ({args[0]}); options stand before it."
            )
    return request
