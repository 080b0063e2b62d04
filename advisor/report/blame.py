"""The table of a pipeline's iterators by their share of the wait.

In: a `Pipeline` and the console's width.  Out: a table, with fewer columns on a narrow terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.catalog import BOOKKEEPING, base_type
from advisor.model.pipeline import Iterator, Pipeline
from advisor.report.branches import Row, name_branches
from advisor.report.places import clean, iterator_text

BAR_WIDTH = 12
WIDE = 90
"""Minimum terminal width at which all columns fit next to a call of ordinary length."""
OTHER_COLUMNS = 72
"""Characters that the columns after the call take in most reports."""
MIN_CALL_WIDTH = 20
MAX_ROWS = 15
MIN_SHARE = 0.001
"""Iterators with a smaller share of the wait are not shown, except the bottleneck."""


def blame_table(pipeline: Pipeline, console: Console) -> Table:
    """One row per iterator that causes some of the wait, the largest share first; report.json lists all of them."""
    is_wide = console.width >= WIDE
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown = (it for it in pipeline.iterators if is_shown(it.name, it.blame_share, bool(it.calls), it.is_bottleneck))
    rows = sorted(shown, key=lambda iterator: -iterator.blame_share)[:MAX_ROWS]
    most = max(MIN_CALL_WIDTH, console.width - OTHER_COLUMNS) if is_wide else None
    table.add_column("call", overflow="fold", ratio=1 if is_wide else None)
    if is_wide:
        table.add_column("runs as", overflow="fold")
    table.add_column("share of wait", justify="right" if not is_wide else "left", no_wrap=True)
    if is_wide:
        for title in ("parallelism", "calls", "self time"):
            table.add_column(title, justify="right", no_wrap=True)
    branches = _branches(pipeline, rows)
    for iterator in rows:
        call, *cells = _row(iterator, is_wide, _bar_character(console), most)
        if iterator.id in branches:
            call = Text.assemble(call, (f" ({clean(branches[iterator.id])})", "dim"))
        table.add_row(call, *cells)
    return table


def _branches(pipeline: Pipeline, shown: Sequence[Iterator]) -> dict[str, str]:
    """Iterator id -> its branch, `input 2 of Zip`, for rows that would read the same."""
    rows = [Row(it.id, it.parent_id, it.name, iterator_text(it).plain) for it in pipeline.iterators]
    return name_branches(rows, {iterator.id for iterator in shown})


def is_shown(name: str, share: float, has_calls: bool, is_bottleneck: bool) -> bool:
    """Return whether an iterator has a row in the tables of the text and the HTML report.

    Args:
        name: Its type.
        share: Its share of the wait.
        has_calls: Whether it represents a call of the script.
        is_bottleneck: Whether it is the bottleneck.
    """
    return is_bottleneck or (share >= MIN_SHARE and (has_calls or base_type(name) not in BOOKKEEPING))


def _row(iterator: Iterator, is_wide: bool, full: str, most: int | None) -> list[Text]:
    style = "bold" if iterator.is_bottleneck else "" if iterator.blame_ns else "dim"
    call = iterator_text(iterator, most)
    if iterator.main_call is None:
        is_added = iterator.injected_by_tensorflow and iterator.parent_id is not None
        call = Text("added by tf.data" if is_added else clean(iterator.name))
    share = units.format_share(iterator.blame_share)
    if not is_wide:
        return [call, Text(share, style)]
    bar = units.format_bar(iterator.blame_share, BAR_WIDTH, full)
    return [
        call,
        Text(clean(iterator.name), style),
        Text.assemble((bar, "red" if iterator.is_bottleneck else "dim"), " " if bar else "", (share, style)),
        Text(_parallelism(iterator), style),
        Text(units.format_count(iterator.num_calls), style),
        Text(units.format_ns(iterator.self_ns), style),
    ]


def _parallelism(iterator: Iterator) -> str:
    if iterator.parallelism is None:
        return ""
    return f"{iterator.parallelism}{' AUTOTUNE' if iterator.is_autotuned else ''}"


def _bar_character(console: Console) -> str:
    return "█" if console.encoding.lower().startswith("utf") else "#"
