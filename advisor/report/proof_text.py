"""The text report of `advisor fix`: what was tried, what is proved, and the resulting diff.

In: a `Report` with its `Proof`, and a rich console.  Out: lines on that console. Nothing is computed here.

    verdict -> changes tried -> before and after -> diff -> rejected -> not measured -> files the script wrote -> rule errors
    -> notes -> how it was measured
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.finding import Rejected
from advisor.model.outcome import FixOutcome, Gain, Interval, Report
from advisor.model.proof_result import PIPELINE, TRAINING, Proof, Side
from advisor.model.untried import MADE_BY_HAND
from advisor.report.lines import diff_text, print_lines, print_list, print_section
from advisor.report.places import clean, display_path, place
from advisor.report.proof_words import phase_words, words_for_fix, words_for_training

MAX_FILES = 20
"""Written files shown; report.json lists all of them."""
WIDE = 96
"""Minimum columns to show before and after side by side."""
MIN_CHANGE_WIDTH = 44
"""Columns that a table leaves for the text of a change. With less, each change is a paragraph."""
_STYLES = {"faster": "bold green", "same": "bold", "slower": "bold yellow", "broken": "bold red", "nothing": "bold"}
_NOTHING = "-"
_GAP, _INDENT = 2, 2
"""Columns between the columns of a table, and before a section."""
_PLACES = {TRAINING: "training", PIPELINE: "pipeline alone"}


def print_proof(report: Report, console: Console) -> None:
    """Print the results of `advisor fix`; nothing if the report has no proof."""
    proof = report.proof
    if proof is None:
        return
    print_lines(console, Text(clean(proof.sentence), _STYLES.get(proof.verdict, "bold")))
    if report.fixes:
        print_section(console, "Changes tried", [*_fixes(report.fixes, console), *_notes_of_fixes(report)])
    if report.comparison is not None:
        print_section(console, "Before and after", _sides(report, proof, console))
    if proof.diff:
        print_section(console, "The change", [diff_text(proof.diff)])
    print_list(console, "Rejected", (f"{entry.change}: {entry.reason} ({entry.rule})" for entry in _rejected(report)))
    print_list(console, "Not measured", proof.left_out)
    print_list(console, "Files opened for writing by the script", _files(proof.written_files))
    print_list(console, "Rule errors", (f"{error.rule}: {error.message}" for error in report.rule_errors))
    print_list(console, "Notes", [*proof.notes, *(proof.test.sentences if proof.test is not None else ())])
    console.print()
    print_lines(console, Text(_measured(report, proof), "dim"))
    if report.run_folder:
        label = clean(display_path(report.run_folder))
        console.print(Text(f"Run folder: {label}", "dim", overflow="fold"), soft_wrap=True)
    title = f"Written, proved on the {_PLACES[proof.proved_on]}" if proof.proved_on else "Written"
    print_list(console, title, (display_path(file) for file in proof.changed_files))
    _print_next(proof, console)


def _print_next(proof: Proof, console: Console) -> None:
    """Print the commands to go on with, each on one line that can be copied."""
    shown = proof.next.command if proof.next is not None else None
    titles: dict[str, dict[str, None]] = {}
    for entry in proof.untried:
        if entry.command is not None and entry.command != shown:
            by_hand = " (make the change in a copy of the script first)" if entry.why in MADE_BY_HAND else ""
            titles.setdefault(entry.command, {})[f"{entry.title}{by_hand}"] = None
    if titles:
        print_section(console, "To try what was not tried", [])
    for command, lines in titles.items():
        for line in lines:
            print_lines(console, Text(clean(f"{line}:")), indent=2)
        _print_command(command, console)
    if proof.next is not None:
        console.print()
        print_lines(console, Text.assemble(("Next: ", "bold"), clean(proof.next.sentence)))
        if proof.next.command is not None:
            _print_command(proof.next.command, console)


def _print_command(command: str, console: Console) -> None:
    console.print(Text(f"    {clean(command)}", "bold", overflow="fold"), soft_wrap=True)


def _fixes(fixes: Iterable[FixOutcome], console: Console) -> Iterable[RenderableType]:
    """A table, or one paragraph per fix if a table would leave too little room for what was changed."""
    fixes = list(fixes)
    titles = ["pipeline alone\npredicted", "\nmeasured", "training step\npredicted", "\nmeasured",
              "\nverdict", "\ndata", "\npeak memory"]  # fmt: skip
    rows = [
        (
            *_gain(fix.pipeline),
            *_gain(fix.step),
            _verdict(fix),
            _data(fix),
            _memory(fix.memory_before_bytes, fix.memory_after_bytes),
        )
        for fix in fixes
    ]
    columns = zip(*rows, strict=True)
    widths = [max(map(len, (*title.splitlines(), *column))) for title, column in zip(titles, columns, strict=True)]
    if console.width < MIN_CHANGE_WIDTH + sum(width + _GAP for width in widths) + _INDENT:
        yield from (_paragraph(fix) for fix in fixes)
        return
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="dim")
    table.add_column("\nchange", overflow="fold", ratio=1)
    for title in titles:
        table.add_column(title, no_wrap=True)
    for fix, (*gains, verdict, data, memory) in zip(fixes, rows, strict=True):
        table.add_row(_name(fix), *gains, Text(verdict, _STYLES.get(fix.verdict, "")), data, memory)
    yield table


def _rejected(report: Report) -> Iterable[Rejected]:
    """The changes of the training step that were not proved."""
    tried = {(fix.rule, fix.title) for fix in report.fixes if fix.is_of_step}
    return [entry for entry in report.rejected if (entry.rule, entry.change) in tried]


def _paragraph(fix: FixOutcome) -> Text:
    gains = [
        f"{what}: predicted {predicted}, measured {measured}"
        for what, (predicted, measured) in (("pipeline alone", _gain(fix.pipeline)), ("training step", _gain(fix.step)))
        if (predicted, measured) != (_NOTHING, _NOTHING)
    ]
    memory = _memory(fix.memory_before_bytes, fix.memory_after_bytes)
    effects = f"data: {_data(fix)}{'' if memory == _NOTHING else f'; peak memory {memory}'}"
    return Text.assemble(
        _name(fix),
        (f"  {_verdict(fix)}", _STYLES.get(fix.verdict, "")),
        "".join(f"\n{line}" for line in (*gains, effects)),
    )


def _name(fix: FixOutcome) -> Text:
    return Text.assemble(place(fix.site) if fix.site else "", " " if fix.site else "", clean(fix.title or fix.rule))


def _verdict(fix: FixOutcome) -> str:
    return words_for_fix(fix.verdict, fix.proved_on, fix.is_applied)


def _gain(gain: Gain) -> tuple[str, str]:
    """Of one quantity, the predicted and the measured speedup."""
    predicted = gain.predicted
    return (
        units.format_range(predicted.value, predicted.low, predicted.high) if predicted else _NOTHING,
        _range(gain.measured),
    )


def _data(fix: FixOutcome) -> str:
    """The effect on the data as observed, and as claimed where that differs."""
    if fix.is_of_step:
        return _NOTHING if fix.safety_seen is None else "untouched"
    if fix.is_undecided:
        return f"{fix.safety_claimed} (undecided)"
    if fix.safety_seen is None:
        return f"{fix.safety_claimed} (claimed)"
    if fix.safety_seen == fix.safety_claimed:
        return str(fix.safety_seen)
    if fix.safety_seen == fix.claimed_together:
        return f"{fix.safety_seen}, with the changes before it"
    return f"{fix.safety_seen}, not {fix.safety_claimed}"


def _notes_of_fixes(report: Report) -> Iterable[RenderableType]:
    for fix in report.fixes:
        if fix.note:
            yield Text(clean(f"{fix.title or fix.rule}: {fix.note}"), "dim")
    if report.proof is not None and report.proof.fixed_numbers is not None:
        yield Text(clean(report.proof.fixed_numbers.sentence), "dim")
    is_measured = report.comparison is not None and report.comparison.end_to_end is not None
    if is_measured and any(fix.is_applied and fix.step.measured is None for fix in report.fixes):
        yield Text("The training step was measured with all kept changes together, below.", "dim")


def _sides(report: Report, proof: Proof, console: Console) -> Iterable[RenderableType]:
    comparison = report.comparison
    before, after = proof.before, proof.after
    rows = []
    for title, name, write, gain in (
        ("pipeline alone", "elements_per_s", units.format_rate, comparison.pipeline_speedup if comparison else None),
        ("training step", "step_ns", units.format_ns, comparison.end_to_end if comparison else None),
        ("input wait", "wait_share", units.format_share, None),
        ("peak memory", "peak_rss_bytes", units.format_bytes, None),
    ):
        values = [_written(side, name, write) for side in (before, after)]
        if values != [_NOTHING, _NOTHING]:
            rows.append((title, *values, _range(gain) if gain is not None else ""))
    if comparison is not None and comparison.end_to_end is None:
        yield Text(f"training: {words_for_training(proof.training)}")
    if console.width < WIDE:
        yield from (Text(f"{title}: {old} -> {new}{f', {gain}' if gain else ''}") for title, old, new, gain in rows)
        return
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim")
    for title in ("", "before", "after", "gain"):
        table.add_column(title, no_wrap=True)
    for row in rows:
        table.add_row(*row)
    yield table


def _written(side: Side, name: str, write: object) -> str:
    value = getattr(side, name)
    return _NOTHING if value is None or not callable(write) else str(write(value))


def _range(interval: Interval | None) -> str:
    if interval is None or not math.isfinite(interval.value):
        return _NOTHING
    return units.format_range(interval.value, interval.low, interval.high)


def _memory(before: int | None, after: int | None) -> str:
    if before is None or after is None:
        return _NOTHING
    return f"{units.format_bytes(before)} -> {units.format_bytes(after)}"


def _files(files: tuple[str, ...]) -> list[str]:
    shown = [display_path(file) for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        shown.append(f"{units.format_count(len(files))} files in total; report.json lists all of them")
    return shown


def _measured(report: Report, proof: Proof) -> str:
    parts = []
    if proof.pipeline_turns:
        parts.append(f"pipeline alone in {units.format_many(proof.pipeline_turns, 'alternating pair')}")
    if proof.end_to_end_turns:
        parts.append(
            f"whole script in {units.format_many(proof.end_to_end_turns, 'alternating pair')} of runs"
            f"{' (ended early)' if proof.test is not None and proof.test.is_early else ''}"
        )
    runs = f"the script was run {units.format_many(proof.runs, 'time')}"
    took = units.format_ns(proof.seconds * units.NS_PER_S)
    phases = ", ".join(map(phase_words, proof.phases))
    took += f" ({phases})" if phases else ""
    host = report.analysis.host
    machine = f" Machine: TensorFlow {host.tensorflow_version}, {units.format_count(host.cores)} cores." if host else ""
    interval = "; medians with 95 % intervals" if parts else ""
    return clean(f"Measured: {', '.join([*parts, runs])} in {took}{interval}.{machine}")
