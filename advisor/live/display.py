"""Shows a watched run on the terminal while it runs, and its summary at the end.

In: a rich console and a `WatchedRun`.  Out: a live table on a terminal, else a line now and then and one for each change.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from advisor.live.view import Throttle, describe, line, summary, table
from advisor.live.watched_run import Change, WatchedRun
from advisor.model.live import LiveSample
from advisor.report.places import clean, display_path

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.model.outcome import Report

Show = Callable[[LiveSample, Sequence[Change]], None]


@contextlib.contextmanager
def shown(
    console: Console, run: WatchedRun, quiet: bool, every_s: float
) -> Iterator[tuple[Show, tuple[int, int] | None]]:
    """Show the run: a live table on a terminal, else a line now and then and one for each change.

    Args:
        console: Where to show it.
        run: The run.
        quiet: Show nothing.
        every_s: Seconds between two lines.

    Yields:
        What to call with each sample, and where the script's output goes; None for stdout and stderr of this process.
    """
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
    yield lines_of(console, run, every_s), None


def lines_of(console: Console, run: WatchedRun, every_s: float) -> Show:
    """Return what shows the run as lines: one now and then, and one for each change.

    Args:
        console: Where the lines are printed.
        run: The run; its figures are read when a line is due.
        every_s: Least number of seconds between two lines that report no change.
    """
    throttle = Throttle(every_s)
    throttle.is_due()

    def show(sample: LiveSample, changes: Sequence[Change]) -> None:
        for change in changes:
            console.print(f"advisor: {describe(change, run)}", soft_wrap=True)
        if throttle.is_due():
            console.print(f"advisor: {line(run)}", soft_wrap=True)

    return show


def print_summary(
    console: Console, run: WatchedRun, warnings: Sequence[str], report: Report | None = None, problem: str = ""
) -> None:
    """Print the summary of a run.

    Args:
        console: Where to print it.
        run: The run.
        warnings: What went wrong with sinks, in sentences.
        report: The report on the run's own window; None if there is none.
        problem: Why there is none; empty if nothing went wrong.
    """
    console.print()
    if run.latest is not None:
        for text in summary(run):
            console.print(Text(text), soft_wrap=not console.is_terminal)
    for warning in warnings:
        console.print(Text(clean(warning), "yellow"), soft_wrap=True)
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
