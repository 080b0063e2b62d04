"""The text report of `advisor compare`.

In: a `RunComparison` and a rich console.  Out: lines on that console.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.pipeline import Iterator
from advisor.model.run_comparison import NodeChange, RunComparison
from advisor.report.lines import print_lines
from advisor.report.places import clean, iterator_text

MAX_NODES = 20
"""Iterators shown; the JSON lists all of them."""
_NOTHING = "-"
_SENTENCES = {
    "faster": "Faster: a step takes less time after the change",
    "slower": "Slower: a step takes more time after the change",
    "same": "No significant difference",
    "broken": "The second script fails",
    "unknown": "The step times give no verdict",
}
_STYLES = {"faster": "bold green", "slower": "bold yellow", "broken": "bold red"}


def print_comparison(comparison: RunComparison, console: Console) -> None:
    """Print both runs side by side."""
    sentence = _SENTENCES.get(comparison.verdict, comparison.verdict)
    ratio = comparison.step_speedup
    if ratio is not None:
        sentence += f", {units.format_range(ratio.value, ratio.low, ratio.high)}"
    print_lines(console, Text(f"{sentence}.", _STYLES.get(comparison.verdict, "bold")))
    console.print()
    print_lines(console, _figures(comparison), indent=2)
    if comparison.nodes:
        console.print()
        print_lines(console, Text("Iterators of the main pipeline", "bold underline"))
        print_lines(console, _nodes(comparison), indent=2)
    notes = [*comparison.notes, *(comparison.test.sentences if comparison.test is not None else ())]
    if notes:
        console.print()
        for note in notes:
            print_lines(console, Text.assemble(("- ", "dim"), clean(note)))


def _figures(comparison: RunComparison) -> Table:
    table = _table("", "before", "after", "gain")
    old, new = comparison.before, comparison.after
    table.add_row("", clean(old.target), clean(new.target), "")
    ratio = comparison.step_speedup
    gain = "" if ratio is None else units.format_range(ratio.value, ratio.low, ratio.high)
    rows = (
        ("step time", old.figures.step_ns, new.figures.step_ns, units.format_ns, gain),
        ("input wait", old.figures.wait_share, new.figures.wait_share, units.format_share, ""),
        ("elements at the root", old.figures.elements_per_s, new.figures.elements_per_s, units.format_rate, ""),
        ("peak memory", old.figures.peak_rss_bytes, new.figures.peak_rss_bytes, units.format_bytes, ""),
        ("steps", old.num_steps or None, new.num_steps or None, units.format_count, ""),
        ("independent segments", old.stretches or None, new.stretches or None, units.format_count, ""),
        ("alternating runs", comparison.turns or None, comparison.turns or None, units.format_count, ""),
    )
    for title, before, after, write, change in rows:
        if before is not None or after is not None:
            table.add_row(title, *(_NOTHING if value is None else write(value) for value in (before, after)), change)
    return table


def _nodes(comparison: RunComparison) -> Table:
    table = _table("call", "runs as", "share of wait", "work per element")
    for change in comparison.nodes[:MAX_NODES]:
        table.add_row(*_row(change))
    return table


def _row(change: NodeChange) -> tuple[Text, str, str, str]:
    old, new = change.before, change.after
    iterator = new or old
    assert iterator is not None
    added = "added by tf.data" if iterator.parent_id else iterator.name
    name = iterator_text(iterator) if iterator.main_call is not None else Text(added)
    if old is None:
        name.append("  new", "green")
    if new is None:
        name.append("  removed", "red")
    return (
        name,
        _pair(_runs_as(old), _runs_as(new)),
        _pair(*(units.format_share(it.blame_share) if it else None for it in (old, new))),
        _pair(
            *(units.format_ns(ns) if ns is not None else None for ns in (change.before_busy_ns, change.after_busy_ns))
        ),
    )


def _runs_as(iterator: Iterator | None) -> str | None:
    if iterator is None:
        return None
    return clean(iterator.name) + (f" x{iterator.parallelism}" if iterator.parallelism else "")


def _pair(before: str | None, after: str | None) -> str:
    """`before -> after`, or a single value where both are equal or one is missing."""
    if before is None or after is None or before == after:
        return before or after or _NOTHING
    return f"{before} -> {after}"


def _table(*titles: str) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, title in enumerate(titles):
        table.add_column(title, overflow="fold", ratio=1 if number == 0 else None)
    return table
