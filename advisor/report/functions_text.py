"""The costly lines inside the functions of a pipeline, for the text report.

In: a `Pipeline` and the console.  Out: the section "Inside the functions".
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.long_lines import shorten_line
from advisor.model.pipeline import Iterator, LineCost, Pipeline
from advisor.report.lines import print_lines, print_section
from advisor.report.places import clean, display_path, iterator_text
from advisor.report.what_runs import about, what_runs

MAX_FUNCTIONS = 3
MAX_LINES = 4
"""Number of entries shown of each; report.json holds more."""
MIN_BLAME = 0.1
"""Functions that cause a smaller share of the wait are not shown, except the bottleneck's."""
MIN_SHARE = 0.02
"""Lines with a smaller share of the function's time are not shown."""


def print_functions(pipeline: Pipeline, console: Console) -> None:
    """Print the costly lines of the functions that cause the wait; nothing if none is known."""
    shown = [
        iterator
        for iterator in sorted(pipeline.iterators, key=lambda iterator: -iterator.blame_share)
        if iterator.lines and (iterator.is_bottleneck or iterator.blame_share >= MIN_BLAME)
    ]
    if not shown:
        return
    print_section(console, "Inside the functions", [])
    for iterator in shown[:MAX_FUNCTIONS]:
        print_lines(console, iterator_text(iterator), indent=2)
        lines = [line for line in iterator.lines if line.share >= MIN_SHARE][:MAX_LINES]
        print_lines(console, _table(iterator, lines), indent=4)
        for line in lines:
            if line.advice:
                print_lines(console, Text(clean(f"{_of_call(iterator, line, 'Line ')}: {line.advice}")), indent=4)


def _of_call(iterator: Iterator, line: LineCost, before: str = "") -> str:
    """The number of a line; with its file, if that is not the one of the call above.

    Args:
        iterator: The iterator of the call.
        line: The line.
        before: What precedes a number without a file.
    """
    call = iterator.main_call
    own_file = call.site.file if call is not None and call.site is not None else ""
    return f"{before}{line.at.line}" if line.at.file == own_file else f"{display_path(line.at.file)}:{line.at.line}"


def _table(iterator: Iterator, lines: list[LineCost]) -> Table:
    table = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(overflow="fold")
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold", ratio=1)
    for line in lines:
        source = Text(clean(shorten_line(line.at.text)))
        source.append(f"  {clean(what_runs(line.ops, line.samples, line.native_share, line.library))}", "dim")
        table.add_row(
            Text(clean(_of_call(iterator, line)), "bold"),
            f"{about(line.total_ns, line.unrecorded_ns, line.samples)}{units.format_ns(line.total_ns)}",
            units.format_share(line.share),
            source,
        )
    return table
