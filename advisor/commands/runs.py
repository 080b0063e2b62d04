"""`advisor runs`: list the run folders in the default location, and delete old ones.

In: limits.  Out: a table; deleted folders.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from advisor.commands.output import console_for_people

if TYPE_CHECKING:
    from advisor.workflows.stored_runs import StoredRun

_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


@click.group("runs", invoke_without_command=True, short_help="List saved runs; delete old ones.")
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the run folders in the default location with age, size and target. Runs saved elsewhere with --out are not listed."""
    if ctx.invoked_subcommand is None:
        from advisor.model.run_folder import runs_folder
        from advisor.workflows.stored_runs import stored_runs

        runs = stored_runs()
        if not runs:
            click.echo(f"There are no runs in {runs_folder()}.")
            return
        _print(runs)


@command.command("prune", short_help="Delete old runs.")
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Keep the newest N (default: from the settings).")
@click.option("--older-than", metavar="AGE", help="Delete runs older than this, such as 7d or 12h.")
@click.option("--dry-run", is_flag=True, help="List what would be deleted without deleting it.")
def prune(keep: int | None, older_than: str | None, dry_run: bool) -> None:
    """Delete old runs. Always kept: the newest run, runs saved with --out, and runs that fix --undo can still revert."""
    from pathlib import Path

    from advisor.model.settings import load_settings
    from advisor.workflows.stored_runs import delete, excess, stored_runs

    age_s = None if older_than is None else _read_age(older_than)
    if keep is None and age_s is None:
        settings = load_settings(Path.cwd())
        chosen = excess(stored_runs(), settings.keep_runs, settings.keep_runs_bytes)
    else:
        chosen = excess(stored_runs(), keep, None, age_s)
    gone = chosen if dry_run else delete(chosen)
    if gone:
        _print(gone)
    click.echo(f"{'Would delete' if dry_run else 'Deleted'} {_amount(gone)}.")


def say_pruned(runs: Sequence[StoredRun], is_quiet: bool = False) -> None:
    """Report on stderr which old runs were deleted to make room for a new one."""
    if runs and not is_quiet:
        click.echo(f"Deleted {_amount(runs)}: see `advisor runs prune --help` for which runs are kept.", err=True)


def _amount(runs: Sequence[StoredRun]) -> str:
    from advisor.model.units import format_bytes, format_many

    return f"{format_many(len(runs), 'old run')} ({format_bytes(sum(run.size_bytes for run in runs))})"


def _print(runs: Sequence[StoredRun]) -> None:
    from rich.table import Table
    from rich.text import Text

    from advisor.model.units import format_bytes
    from advisor.report.places import clean, display_path

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("run folder", overflow="fold", ratio=1)
    for title in ("age", "size"):
        table.add_column(title, no_wrap=True, justify="right")
    table.add_column("target", overflow="fold")
    table.add_column("kept: ", overflow="fold")
    now = time.time()
    for run in runs:
        texts = (
            display_path(str(run.path)),
            _age(now - run.made_s),
            format_bytes(run.size_bytes),
            run.target,
            run.kept_because,
        )
        table.add_row(*(Text(clean(text)) for text in texts))
    console_for_people().print(table)


def _age(seconds: float) -> str:
    for size, unit in _AGES:
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return "0 s"


def _read_age(text: str) -> float:
    """Parse an age such as `7d`, or any duration, to seconds; raise BadParameter if it is neither."""
    from advisor.model.units import parse_seconds

    number, day, rest = text.strip().lower().partition("d")
    try:
        return float(number) * 86400 if day and not rest.strip("ays") else parse_seconds(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not an age; write a number followed by d, h or min, such as 7d.", param_hint="--older-than"
        ) from None
