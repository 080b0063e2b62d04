"""`advisor prove`: a referee for any change of a script.

In: a script, a change of it, and options.  Out: one verdict, with the elements compared and the speed measured, as text and JSON;
lines in a journal, if one is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from advisor.commands.output import EXIT_MATCHED, console_for_people, progress_bar, write_json
from advisor.commands.script_target import (
    SCRIPT_SETTINGS,
    ScriptCommand,
    json_option,
    read_duration,
    request_of,
    target_argument,
    window_options,
)

if TYPE_CHECKING:
    from advisor.gate.changed_texts import ChangedTexts
    from advisor.model.change_proof import ChangeProof
    from advisor.model.errors import AdvisorError
    from advisor.model.settings import Settings
    from advisor.workflows.prove_request import ProveRequest

DEFAULT_BUDGET = "10min"
FAIL_ON = ("slower", "different-data", "not-faster", "cannot-tell")
_CHANGES = ("--with", "--patch", "--rev")


class ProveCommand(ScriptCommand):
    """Command whose options may also follow the script directly, if one of them names the change."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move options that directly follow the script before it, unless a change is named there; the others are the script's."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        flags = {name for option in options if option.is_flag for name in option.opts}
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        first = _end_of_options(args, 0, flags, with_value)
        last = first + (2 if args[first : first + 1] == ["-m"] else 1)
        stop = _end_of_options(args, last, flags, with_value)
        before, moved = args[:first], args[last:stop]
        if not _names_change(before) and _names_change(moved):
            args = [*before, *moved, *args[first:last], *args[stop:]]
        return super().parse_args(ctx, args)


def _end_of_options(args: list[str], index: int, flags: set[str], with_value: set[str]) -> int:
    """Return the index of the first argument from `index` on that is neither an option of this command nor its value."""
    while index < len(args):
        name, equals, _ = args[index].partition("=")
        if name not in flags | with_value:
            break
        index += 1 if equals or name in flags else 2
    return min(index, len(args))


def _names_change(args: list[str]) -> bool:
    return any(arg.partition("=")[0] in _CHANGES for arg in args)


@click.command(
    "prove",
    cls=ProveCommand,
    context_settings=SCRIPT_SETTINGS,
    options_metavar="[OPTIONS]",
    short_help="Judge a change of a script: same data? faster?",
)
@target_argument("SCRIPT")
@click.option(
    "--with", "other", type=click.Path(path_type=Path), metavar="OTHER.py", help="The change: this text instead."
)
@click.option(
    "--patch", type=click.Path(path_type=Path), metavar="FILE|-", help="The change: a unified diff; - for stdin."
)
@click.option("--rev", metavar="REV", help="The change: the Python files as they are in this git revision.")
@click.option(
    "--budget",
    callback=read_duration,
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="T",
    help="Time limit for the whole command.",
)
@click.option("--pipeline-only", is_flag=True, help="Measure the input pipeline alone, without running the training.")
@click.option("--fail-on", multiple=True, type=click.Choice(FAIL_ON), help="Exit with 1 if this is the result.")
@json_option
@click.option("--journal", type=click.Path(path_type=Path), metavar="FILE", help="Append what was tried to this file.")
@click.option("--hypothesis", default="", metavar="TEXT", help="What the change is expected to do, for the journal.")
@click.option("--resume", is_flag=True, help="Run nothing if the journal holds the result of this change.")
@window_options
@click.option("--quiet", is_flag=True, help="Print neither report nor progress.")
@click.option("--show-output", is_flag=True, help="Show the script's output on stderr.")
def command(target: str, args: tuple[str, ...], other: Path | None, patch: Path | None, rev: str | None, budget: float,
            pipeline_only: bool, fail_on: tuple[str, ...], json_path: str | None, journal: Path | None, hypothesis: str,
            resume: bool, quiet: bool, **options: Any) -> int:  # fmt: skip  # noqa: ANN401
    """Say whether a change of SCRIPT, or of modules beside it, keeps its data and makes it faster.

    SCRIPT is a script or `-m MODULE`; the arguments after it are passed to it. The change is given by one of --with, --patch and
    --rev. No file is changed; with --journal, lines are appended to that file.
    """
    from advisor.prove.budget import check_budget
    from advisor.workflows.analyze import load
    from advisor.workflows.prove_request import ProveRequest

    if sum(option is not None for option in (other, patch, rev)) != 1:
        raise click.UsageError("Give the change by one of --with OTHER.py, --patch FILE and --rev REV.")
    if journal is None and (resume or hypothesis):
        raise click.UsageError(f"{'--resume' if resume else '--hypothesis'} needs --journal FILE.")
    if json_path not in (None, "-"):
        from advisor.model.outputs import check_output
        from advisor.model.own_files import FileKind

        check_output("--json", Path(json_path or ""), FileKind.CHANGE)
    request = request_of(target, args, {**options, "rules": ()})
    if request.is_saved_run:
        raise click.UsageError(f"{target} is a saved run; `advisor prove` needs the script, which it runs.")
    check_budget(budget)
    _, settings = load(request)
    proving = ProveRequest(request, _read_change(request.path, other, patch, rev), budget, pipeline_only)
    change, problem = _judge(proving, settings, quiet, fail_on, _Noting(journal, hypothesis, resume))
    _emit_json(change, json_path)
    if not quiet:
        from advisor.report.change_text import print_change

        print_change(change, console_for_people(to_stderr=json_path == "-"))
    if problem is not None:  # raised only now, so that the verdict, which took minutes, is shown first
        raise problem
    if change.is_interrupted:
        raise KeyboardInterrupt
    return _exit_code_of(change, fail_on)


@dataclass(frozen=True)
class _Noting:
    """The options of the journal."""

    path: Path | None
    hypothesis: str
    is_resumed: bool


def _judge(
    proving: ProveRequest, settings: Settings, quiet: bool, fail_on: Sequence[str], noting: _Noting
) -> tuple[ChangeProof, AdvisorError | None]:
    """Return the verdict, from the journal or of new runs, and the error if it could not be noted."""
    from advisor.workflows.prove import prove
    from advisor.workflows.prove_journal import TrialJournal
    from advisor.workflows.prove_request import announcement

    trial = None
    if noting.path is not None:
        trial = TrialJournal.open(noting.path, proving, settings, noting.hypothesis)
        earlier = trial.earlier_result() if noting.is_resumed else None
        if earlier is not None:
            return earlier, None
    if not quiet:
        click.echo(announcement(proving), err=True)
    with progress_bar(quiet or proving.script.show_output, proving.budget_s) as on_progress:
        if trial is None:
            return prove(proving, settings, on_progress), None
        return trial.prove(on_progress, lambda change: _exit_code_of(change, fail_on))


def _exit_code_of(change: ChangeProof, fail_on: Sequence[str]) -> int:
    return EXIT_MATCHED if set(fail_on) & _matches(change) else 0


def _read_change(script: Path | None, other: Path | None, patch: Path | None, rev: str | None) -> ChangedTexts:
    from advisor.gate.changed_texts import read_other, read_patch, read_revision

    if other is not None:
        if script is None:
            raise click.UsageError("--with needs the path of a script; of a module, use --patch or --rev.")
        return read_other(script, other)
    return read_patch(script, patch) if patch is not None else read_revision(script, rev or "")


def _matches(change: ChangeProof) -> set[str]:
    """Return the values of `--fail-on` that the result matches."""
    matches = {
        "slower": change.speed == "slower",
        "different-data": change.data == "different",
        "not-faster": change.speed != "faster",
        "cannot-tell": "unknown" in (change.data, change.speed),
    }
    return {name for name, is_matched in matches.items() if is_matched}


def _emit_json(change: ChangeProof, json_path: str | None) -> None:
    from advisor.model.own_files import FileKind
    from advisor.report.change_json import change_to_bytes

    write_json(json_path, FileKind.CHANGE, lambda: change_to_bytes(change))
