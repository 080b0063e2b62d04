"""Judges the turns of two live processes: whether their ratio can be trusted, and what several pairs of processes say together.

In: the turns of both sides, the decisions of the sequential test.  Out: why fresh processes are needed, or the joint decision.

Turns of one process share what is decided when it starts: the layout of its memory, the order of its hashes, what AUTOTUNE has
found. Their interval does not cover that (Kalibera and Jones, "Rigorous benchmarking in reasonable time", 2013). So a result
near the limit is measured with a second pair of processes, and the interval of both is then as wide as the two together.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.host.calibration.proof import DRIFT_ERROR, WORTHWHILE
from advisor.model.intervals import t_quantile
from advisor.model.outcome import Interval
from advisor.model.paired_test import CLEAR, FUTILE, LAST
from advisor.model.sequential_test import MIN_PAIRS, Decision
from advisor.model.units import format_range, format_share
from advisor.prove.trial.trial_result import judge


@dataclass(frozen=True, slots=True)
class TimedTurn:
    """The step time of one turn; the window of a process counts as its first turn."""

    step_ns: float
    halves_ns: tuple[float, float] | None = None
    """Mean step times of the first half of the turn and of the rest; None: unknown, as for the window."""


def drift_of(turns: Sequence[TimedTurn]) -> str:
    """Return how the step times of one process drift, as the end of a sentence; empty if they do not.

    A drift of less than `WORTHWHILE` is ignored, and so is one that may be chance.

    Args:
        turns: The turns of the process in their order.
    """
    halves = [math.log(later / earlier) for earlier, later in (turn.halves_ns for turn in turns if turn.halves_ns)]
    if _is_material(halves):
        change = math.exp(statistics.fmean(halves)) - 1
        return f"the second half of a turn takes {_change(change)} than the first, so a turn begins unlike a running pipeline"
    logs = [math.log(turn.step_ns) for turn in turns]
    slope, t = _trend(logs)
    total = slope * (len(logs) - 1)
    if abs(total) > math.log(WORTHWHILE.value) and t > _quantile(len(logs) - 2):
        return f"its step times drift: after {len(logs)} turns, a step takes {_change(math.exp(total) - 1)}"
    return ""


def leaves_doubt(decision: Decision) -> bool:
    """Whether a second pair of processes might lead to another verdict.

    It does not if neither a worthwhile gain nor a loss is possible, and if the gain or loss is clear by `WORTHWHILE` more.
    """
    if decision.reason == FUTILE:
        return False
    speedup = decision.speedup
    is_far = speedup.low >= WORTHWHILE.value or speedup.high <= 1 / WORTHWHILE.value
    return not (decision.reason == CLEAR and is_far)


def joint(first: Decision, second: Decision, ratios: Sequence[float]) -> Decision:
    """Return the decision of two pairs of processes, with an interval that holds both.

    Args:
        first: That of the first pair of processes.
        second: That of the second one.
        ratios: The ratios of all pairs of turns.
    """
    low = min(first.speedup.low, second.speedup.low)
    high = max(first.speedup.high, second.speedup.high)
    speedup = Interval(statistics.median(ratios), low, high)
    if low > 1 or high < 1:
        return Decision(speedup, CLEAR)
    is_futile = 1 / WORTHWHILE.value < low and high < WORTHWHILE.value
    return Decision(speedup, FUTILE if is_futile else LAST)


def contradiction(first: Decision, second: Decision) -> str:
    """Return how two pairs of processes contradict each other, as the end of a sentence; empty if they do not.

    They do if their intervals have nothing in common and lead to different verdicts: the starts differ by more than the turns.
    """
    one, two = first.speedup, second.speedup
    is_apart = one.high < two.low or two.high < one.low
    if not is_apart or judge(one)[0] == judge(two)[0]:
        return ""
    ranges = " and ".join(format_range(speedup.value, speedup.low, speedup.high) for speedup in (one, two))
    return f"two pairs of processes differ by more than their turns ({ranges})"


def _is_material(logs: Sequence[float]) -> bool:
    """Whether the mean of these logarithms differs from 0 by a worthwhile factor, and not by chance."""
    if len(logs) < MIN_PAIRS - 1:
        return False
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    return abs(mean) > math.log(WORTHWHILE.value) and abs(mean) > _quantile(len(logs) - 1) * error


def _trend(values: Sequence[float]) -> tuple[float, float]:
    """Return the slope of a line through the values, and by how many standard errors it differs from 0."""
    count = len(values)
    if count <= MIN_PAIRS:  # three points are on a line too often
        return 0.0, 0.0
    times = range(count)
    slope, offset = statistics.linear_regression(times, values)
    rest = sum((value - offset - slope * time) ** 2 for time, value in zip(times, values, strict=True))
    spread = sum((time - (count - 1) / 2) ** 2 for time in times)
    error = math.sqrt(rest / (count - 2) / spread)
    return slope, math.inf if not error else abs(slope) / error


def _quantile(freedom: int) -> float:
    return t_quantile(freedom, 1 - 2 * DRIFT_ERROR.value)


def _change(share: float) -> str:
    return f"{format_share(abs(share))} {'longer' if share > 0 else 'less'}"
