"""Summarises in tables what proofs show about rules and predictions.

In: `Row`s, one for each fix that was tried.  Out: lines of Markdown.

The error of a prediction is `measured / predicted - 1`, relative to the prediction: 0.15 is 15 %. Errors are computed for
fixes whose gain was both predicted and measured; others (less memory, another order) appear in the first table only.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.units import format_bytes

REALISTIC = ("flowers_like", "image_folder", "text_lines")
FASTER = 1.05
"""A rule's fix must be proved faster than this: the whole interval lies above it."""
PROMISE = 1.05
"""Precision is computed over findings marked auto that predict more than this."""
CLEAR_PROMISE = 1.10
"""A prediction above this must not be measured as a loss."""
MOST_OF_IT = 10
"""Gains of this size leave a tenth of the step or less; the prediction is then that of the remainder."""
LEVELS = ("exact", "rerandomized", "reordered", "numerics", "changes")


@dataclass(frozen=True)
class Row:
    """One fix, tried alone on the original script. Ratios are (value, low, high), elements per second after to before."""

    script: str
    rule: str
    title: str
    is_auto: bool
    predicted: tuple[float, float, float] | None
    measured: tuple[float, float, float] | None
    verdict: str
    claimed: str
    seen: str
    memory_bytes: tuple[int | None, int | None] = (None, None)
    """Peak resident memory of the process without and with the fix."""
    note: str = ""
    is_whole_script: bool = False

    @property
    def error(self) -> float | None:
        """The relative error of the predicted speedup; None: one of the two is unknown."""
        if self.predicted is None or self.measured is None or not math.isfinite(self.measured[0]):
            return None
        return self.measured[0] / self.predicted[0] - 1

    @property
    def is_proved(self) -> bool:
        """Whether it is faster: the whole interval above `FASTER`."""
        return self.verdict == "faster" and self.measured is not None and self.measured[1] > FASTER

    @property
    def is_as_claimed(self) -> bool:
        """Whether the elements show the claimed level, or one closer to `exact`."""
        return self.seen in LEVELS and LEVELS.index(self.seen) <= LEVELS.index(self.claimed)

    def __str__(self) -> str:
        off = "" if self.error is None else f", off by {self.error:+.0%}"
        return (
            f"{self.rule} ({'auto' if self.is_auto else 'ask'}) {self.title}: predicted {span(self.predicted)}, measured "
            f"{span(self.measured)}{off}, {self.verdict}, {self.claimed}, seen {self.seen}"
            f"{', whole script' if self.is_whole_script else ''}{f' ({self.note})' if self.note else ''}"
        )


def rule_table(rows: Sequence[Row], rules: Sequence[str]) -> list[str]:
    """One line per rule: its fix on its own example."""
    lines = [
        "| rule | applied | predicted | measured | verdict | safety claimed | seen | peak memory |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rule in rules:
        own = [row for row in rows if row.rule == rule and row.script == rule.replace("-", "_")]
        for row in own[:1]:
            where = " (1)" if row.is_whole_script else ""
            cells = [
                rule, "auto" if row.is_auto else "ask", span(row.predicted), span(row.measured) + where, row.verdict, row.claimed,
                row.seen, memory(row),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        if not own:
            lines.append(f"| {rule} | not tried | | | | | | |")
    return [
        *lines,
        "",
        "(1) the training step of the whole script; all others: elements per second of the pipeline alone.",
    ]


def summary(rows: Sequence[Row]) -> list[str]:
    """Over all fixes: errors, losses, precision."""
    errors = sorted(abs(row.error) for row in rows if row.error is not None)
    promised = [row for row in rows if row.predicted is not None and row.predicted[0] > CLEAR_PROMISE]
    losses = [row for row in promised if row.measured is not None and row.measured[2] < 1]
    auto = [row for row in rows if row.is_auto and row.predicted is not None and row.predicted[0] > PROMISE]
    proved = [row for row in auto if row.verdict == "faster"]
    scripts = len({row.script for row in rows})
    own = [row for row in rows if row.script == row.rule.replace("-", "_")]
    lines = [f"{len(rows)} fixes of {scripts} scripts.", "", "| | |", "|---|---|"]
    if errors:
        lines += [
            f"| predicted against measured speedup, median error | {statistics.median(errors):.0%} of {len(errors)} fixes |",
            f"| 90th percentile | {percentile(errors, 0.9):.0%} |",
            *(error_line(rows, low, high) for low, high in itertools.pairwise((0, MOST_OF_IT, math.inf))),
            f"| measured inside the predicted range | {sum(is_inside(row) for row in rows)} of {len(errors)} |",
        ]  # fmt: skip
    lines += [
        f"| rules proved faster on their own example, the whole interval above {FASTER} | {sum(row.is_proved for row in own)} of "
        f"{len(own)}{named([row for row in own if not row.is_proved])} |",
        f"| predicted gain over 10 % that measured as a loss | {len(losses)} of {len(promised)}{named(losses)} |",
        f"| marked auto, predicted gain over 5 %, proved faster | {len(proved)} of {len(auto)}"
        f"{named([row for row in auto if row not in proved])} |",
        f"| safety seen as claimed | {sum(row.is_as_claimed for row in rows)} of {len(rows)}"
        f"{named([row for row in rows if not row.is_as_claimed])} |",
    ]
    return lines


def error_line(rows: Sequence[Row], low: float, high: float) -> str:
    """The errors of fixes with a measured gain between `low` and `high`."""
    errors = sorted(
        abs(row.error)
        for row in rows
        if row.error is not None and row.measured is not None and low <= row.measured[0] < high
    )
    what = f"measured gain under {high:g}x" if math.isfinite(high) else f"measured gain of {low:g}x and more"
    if not errors:
        return f"| {what} | none |"
    figures = f"{statistics.median(errors):.0%}, {percentile(errors, 0.9):.0%} of {len(errors)}"
    return f"| {what}: median error, 90th percentile | {figures} |"


def is_inside(row: Row) -> bool:
    """Whether the measured speedup lies in the predicted range."""
    return row.predicted is not None and row.error is not None and row.predicted[1] <= measured(row) <= row.predicted[2]


def measured(row: Row) -> float:
    """The measured speedup; NaN if there is none."""
    return math.nan if row.measured is None else row.measured[0]


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def named(rows: Sequence[Row]) -> str:
    """The names in brackets; empty if there are none."""
    return f" ({', '.join(f'{row.rule} in {row.script}' for row in rows)})" if rows else ""


def span(interval: Sequence[float] | None) -> str:
    """`1.95x (1.80 to 2.31)`."""
    return "" if interval is None else f"{interval[0]:.2f}x ({interval[1]:.2f} to {interval[2]:.2f})"


def memory(row: Row) -> str:
    """Without and with the fix."""
    before, after = row.memory_bytes
    return "" if before is None or after is None else f"{format_bytes(before)}, {format_bytes(after)}"
