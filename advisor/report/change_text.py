"""The text report of `advisor prove`.

In: a `ChangeProof` and a rich console.  Out: lines on that console: the verdict, the datasets, both sides, notes.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.change_proof import EQUAL_FASTER, OTHER_DATA, OTHER_FASTER, SLOWER, ChangeProof, ComparedDataset
from advisor.model.outcome import LossPoint
from advisor.report.lines import print_lines, print_list, print_section
from advisor.report.places import clean
from advisor.report.proof_words import phase_words

_STYLES = {EQUAL_FASTER: "bold green", OTHER_FASTER: "bold red", OTHER_DATA: "bold red", SLOWER: "bold yellow"}
_NOTHING = "-"


def print_change(change: ChangeProof, console: Console) -> None:
    """Print the verdict and what it is based on."""
    headline = f"{change.verdict[0].upper()}{change.verdict[1:]}."
    print_lines(console, Text.assemble((headline, _STYLES.get(change.verdict, "bold")), f" {clean(change.sentence)}"))
    files = ", ".join(map(clean, change.files))
    print_lines(console, Text(f"{clean(change.target)}, {clean(change.change)} (changes {files})", "dim"))
    if change.datasets:
        print_section(console, "Elements", [_datasets(change.datasets)])
        for dataset in change.datasets:
            if dataset.difference is not None or dataset.note:
                print_lines(console, _details(dataset), indent=2)
    figures = _figures(change)
    if figures.row_count:
        print_section(console, "Pipeline alone" if change.is_pipeline_only else "Whole script", [figures])
    if change.losses:
        print_section(console, "Loss of the first batches (identical data)", [_losses(change)])
        if change.loss is not None:
            print_lines(console, Text(change.loss.sentence), indent=2)
    told = [*change.notes, *(change.test.sentences if change.test is not None else ())]
    if change.judged_before:
        notes = [*told, f"Found at {change.judged_before} (--resume); nothing was run now."]
        print_list(console, "Notes", notes)
        return
    runs = f"The script was run {units.format_many(change.runs, 'time')}, in {units.format_ns(change.seconds * units.NS_PER_S)}"
    runs += f" ({', '.join(map(phase_words, change.phases))})." if change.phases else "."
    print_list(console, "Notes", [*told, runs])


def _datasets(datasets: tuple[ComparedDataset, ...]) -> Table:
    table = _table("dataset", "effect of the change", "elements compared")
    for number, dataset in enumerate(datasets):
        name = f"{clean(dataset.name)} (training)" if number == 0 else clean(dataset.name)
        effect = "unknown" if dataset.safety is None else str(dataset.safety)
        if dataset.is_undecided:
            effect += " (undecided)"
        of = "whole epoch" if dataset.is_complete else "part of an epoch"
        count = f"{units.format_count(dataset.elements)} ({of})" if dataset.elements else _NOTHING
        table.add_row(name, effect, count)
    return table


def _details(dataset: ComparedDataset) -> Text:
    text = Text.assemble(("- ", "dim"), f"{clean(dataset.name)}: ")
    if dataset.note:
        text.append(clean(dataset.note))
    difference = dataset.difference
    if difference is None:
        return text
    where = f"element {difference.element}"
    if difference.component is not None:
        where += f", component {difference.component + 1}"
    text.append(f" First difference: {where}, {clean(difference.what)}")
    if difference.before or difference.after:
        text.append(f": {clean(difference.before)} before, {clean(difference.after)} after")
    return text.append(".")


def _figures(change: ChangeProof) -> Table:
    table = _table("", "before", "after", "gain")
    ratio = change.speedup
    gain = "" if ratio is None else units.format_range(ratio.value, ratio.low, ratio.high)
    old, new = change.before, change.after
    rows = (
        ("step time", old.step_ns, new.step_ns, units.format_ns, gain),
        ("elements per second", old.elements_per_s, new.elements_per_s, units.format_rate, gain),
        ("input wait", old.wait_share, new.wait_share, units.format_share, ""),
        ("peak memory", old.peak_rss_bytes, new.peak_rss_bytes, units.format_bytes, ""),
        ("alternating turns", change.turns or None, change.turns or None, units.format_count, ""),
    )
    for title, before, after, write, shown in rows:
        if before is not None or after is not None:
            table.add_row(title, *(_NOTHING if value is None else write(value) for value in (before, after)), shown)
    return table


def _losses(change: ChangeProof) -> Table:
    table = _table("batches", "before", "after")
    for point in _sampled(change.losses):
        table.add_row(units.format_count(point.batches), f"{point.before:.4g}", f"{point.after:.4g}")
    return table


def _sampled(losses: Sequence[LossPoint]) -> list[LossPoint]:
    """The first point, the last one, and those at about twice the batches of the one before."""
    chosen = list(losses[:1])
    for point in losses[1:-1]:
        if point.batches >= 2 * chosen[-1].batches:
            chosen.append(point)
    return chosen + list(losses[1:][-1:])


def _table(*titles: str) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        table.add_column(title, overflow="fold")
    return table
