"""The command `advisor`: options in, exit code out.

In: the command line.  Out: the report on stdout, everything else on stderr, and an exit code:

    0  analysed            1  analysed, and --fail-on matched       2  could not: one sentence says what, where, what to do
    3  the script failed before anything was measured               130  interrupted

Importing this module imports click and nothing heavier: `advisor --help` has to feel instant.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor import __version__
from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.phases import Request

EXIT_MATCHED = 1
EXIT_FAILED = 2
EXIT_INTERRUPTED = 130
PIPE_WIDTH = 100
"""Columns where stdout is no terminal and COLUMNS does not say."""
ALLOWABLE = ("rerandomized", "reordered", "numerics")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code. `args`: without the program's name; None: those of this process."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal's encoding lacks is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    try:
        code = advisor.main(args=args, prog_name="advisor", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_FAILED)
    except AdvisorError as error:
        return _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        return _fail("Interrupted.", EXIT_INTERRUPTED)
    except BrokenPipeError:  # `| head` has seen enough; Python must not complain at exit either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return _fail(f"The system said no{where}: {error.strerror or error}.", EXIT_FAILED)
    except Exception as error:  # a mistake of ours must not end with 1, which says that --fail-on matched
        import traceback

        traceback.print_exc()
        return _fail(
            f"This is a bug in advisor {__version__} ({type(error).__name__}), not in your script.", EXIT_FAILED
        )


class AnalyzeCommand(click.Command):
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


def _read_seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Seconds of a duration such as `30`, `500ms`, `2min`."""
    from advisor.units import parse_seconds

    try:
        return None if value is None else parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, no_args_is_help=False)
@click.version_option(__version__, message="advisor %(version)s")
def advisor() -> None:
    """Say what slows a tf.data input pipeline, on which line, and what to change."""


@advisor.command(
    cls=AnalyzeCommand,
    context_settings={"allow_interspersed_args": False},
    options_metavar="[OPTIONS]",
    short_help="Find what slows a script's input pipeline.",
)
@click.argument("target", metavar="TARGET")
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the report as JSON; - for stdout.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Run folder (default: a new one).")
@click.option(
    "--rules", "rules", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="Folder of more rules."
)
@click.option(
    "--allow", multiple=True, type=click.Choice(ALLOWABLE), help="What fixes may do to the data beyond exact."
)
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Steps to profile (default: until stable).")
@click.option("--warmup", type=click.IntRange(min=0), metavar="N", help="Steps before that (default: adaptive).")
@click.option("--seconds", callback=_read_seconds, metavar="S", help="Longest profile, such as 30 or 2min.")
@click.option("--to-end", is_flag=True, help="Let the script run on to its end.")
@click.option("--ceiling", is_flag=True, help="Run again on the first batch repeated: the most that fixes can give.")
@click.option("--fail-on", multiple=True, metavar="RULE|any|input-bound", help="Exit with 1 if this is found.")
@click.option("--quiet", is_flag=True, help="Print no report and no progress.")
@click.option("--show-output", is_flag=True, help="Show the script's own output, on stderr.")
def analyze(target: str, args: tuple[str, ...], json_path: str | None, quiet: bool, fail_on: tuple[str, ...],
            **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Run TARGET, watch a short steady part of it, and say what slows its input.

    TARGET is a script, `-m MODULE`, or a saved run: a run folder, a logdir or a .xplane.pb file. All after a script belongs
    to the script.
    """
    from advisor import phases
    from advisor.report.json import report_to_bytes, write_report

    request = _request(target, args, options)
    rules, settings = phases.load(request)
    _check_fail_on(fail_on, rules)
    people = _console(to_stderr=json_path == "-")
    with _progress(is_quiet=quiet or request.show_output) as on_progress:
        report = phases.analyze(request, rules, settings, on_progress)
    if not (request.is_saved_run or request.show_output):
        _show_failure(report)
    if json_path == "-":
        sys.stdout.buffer.write(report_to_bytes(report))
        sys.stdout.flush()
    elif json_path is not None:
        write_report(report, Path(json_path))
    if not quiet:
        from advisor.report.text import print_report

        print_report(report, people)
    return EXIT_MATCHED if _is_matched(report, fail_on) else 0


@advisor.command("rules", short_help="List the rules.")
@click.option("--rules", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="More rules.")
def list_rules(folders: tuple[Path, ...]) -> None:
    """List the rules: id and what each one finds."""
    from advisor.report.rule_pages import print_rules

    print_rules(_load_rules(folders), _console())


@advisor.command(short_help="Explain one rule.")
@click.argument("rule", metavar="RULE")
@click.option("--rules", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="More rules.")
def explain(rule: str, folders: tuple[Path, ...]) -> None:
    """Print the page of RULE: why it is slow, what the fix does, when not to."""
    from advisor.report.rule_pages import print_page
    from advisor.settings import did_you_mean

    by_id = {loaded.id: loaded for loaded in _load_rules(folders)}
    if rule not in by_id:
        hint = did_you_mean(rule, by_id) or " `advisor rules` lists them."
        raise click.UsageError(f"There is no rule {rule!r}.{hint}")
    print_page(by_id[rule], _console())


def _request(target: str, args: tuple[str, ...], options: dict[str, Any]) -> Request:
    """The request of these options. Raises UsageError for options that a saved run has no use for."""
    from advisor.phases import Request

    module = None
    if target == "-m":
        if not args:
            raise click.UsageError("-m needs the name of a module.")
        module, args = args[0], args[1:]
    request = Request(
        path=None if module else Path(target),
        module=module,
        args=args,
        out=options["out"],
        rule_directories=options["rules"],
        allow=options["allow"],
        steps=options["steps"],
        warmup=options["warmup"],
        seconds=options["seconds"],
        to_end=options["to_end"],
        show_output=options["show_output"],
        with_ceiling=options["ceiling"],
    )
    if request.path is not None and request.path.exists() and request.is_saved_run:
        useless = [name for name in ("steps", "warmup", "seconds") if options[name] is not None]
        useless += [name for name in ("to_end", "ceiling", "show_output") if options[name]]
        if useless:
            raise click.UsageError(
                f"--{useless[0].replace('_', '-')} is for scripts; {target} is a saved run, nothing is run again."
            )
        if args:
            raise click.UsageError(
                f"{target} is a saved run and takes no arguments ({args[0]}); options stand before it."
            )
    return request


def _check_fail_on(fail_on: Sequence[str], rules: Sequence[LoadedRule]) -> None:
    """A typing mistake must not turn a gate off. Raises UsageError."""
    from advisor.settings import did_you_mean

    known = ["any", "input-bound", *(loaded.id for loaded in rules)]
    for name in fail_on:
        if name not in known:
            raise click.UsageError(f"--fail-on {name}: there is no such rule.{did_you_mean(name, known)}")


def _is_matched(report: Report, fail_on: Sequence[str]) -> bool:
    found = {finding.rule for finding in report.findings}
    return (
        ("any" in fail_on and bool(found))
        or ("input-bound" in fail_on and report.analysis.verdict.is_input_bound)
        or bool(found & set(fail_on))
    )


def _show_failure(report: Report) -> None:
    """What a script that failed after its window wrote to stderr: its own traceback, untouched."""
    recording = report.analysis.recording
    if recording is None or recording.script_exit.code == 0:
        return
    with contextlib.suppress(OSError):
        sys.stderr.buffer.write((Path(report.run_folder) / "script.err").read_bytes())
        sys.stderr.flush()


def _load_rules(folders: Sequence[Path]) -> list[LoadedRule]:
    from advisor.engine import load_rules
    from advisor.settings import load_settings

    return load_rules(folders, load_settings(Path.cwd()))


def _console(to_stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if to_stderr else sys.stdout
    has_width = stream.isatty() or "COLUMNS" in os.environ
    return Console(file=stream, width=None if has_width else PIPE_WIDTH, highlight=False, markup=False, emoji=False)


def _progress(is_quiet: bool) -> contextlib.AbstractContextManager[Any]:
    from rich.console import Console

    from advisor.report.progress import show_progress

    return show_progress(Console(stderr=True), is_quiet)


def _fail(message: str, code: int) -> int:
    line = " ".join(message.split())
    with contextlib.suppress(OSError):
        click.echo(f"error: {line}", err=True)
    return code
