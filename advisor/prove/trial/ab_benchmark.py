"""A/B benchmark of two pipelines, interleaved in one process.

In: two sides, before and after (`ab_side`).  Out: a `Measurement`: the ratio of their rates with its 95 % interval.

One side runs at a time. Pairs of turns alternate in order (before-after, after-before), so that a machine that gets slower or
faster favours neither. Each pair gives one ratio; the result is their median with its exact interval by order statistics. The
stopping rule is fixed in advance: `Plan`.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from advisor.model.intervals import SEQUENTIAL_CONFIDENCE, median_interval
from advisor.model.outcome import Interval
from advisor.prove.trial.ab_side import CannotMeasure, Plan, Turn
from advisor.prove.trial.trial_result import judge


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a measurement."""

    verdict: str
    """`faster`, `same` or `slower`, see `trial_result.judge`."""
    speedup: Interval | None
    """None: fewer than `min_turns` pairs fitted into the budget."""
    rate_before: float
    """Elements per second, median of the turns."""
    rate_after: float
    turns: int
    """Pairs of turns."""
    note: str = ""
    """The reason for the verdict, if it needs one."""


class TakesTurns(Protocol):
    """A prepared side, in this process or in another."""

    def turn(self) -> Turn:
        """See `Side.turn`."""
        ...


def measure(
    before: TakesTurns, after: TakesTurns, plan: Plan, on_turn: Callable[[int, int], None] = lambda done, of: None
) -> Measurement:
    """Run pairs of turns of two prepared sides until the plan's stopping rule is met.

    Args:
        before: The pipeline without the change, after `prepare`.
        after: The pipeline with the change, after `prepare`.
        plan: The stopping rule.
        on_turn: Called after each pair with the number of pairs so far and the maximum.

    Returns:
        The result; its speedup is None if there were fewer than `plan.min_turns` pairs.

    Raises:
        CannotMeasure: A side fails, or there was no time for a single pair.
    """
    pairs: list[tuple[Turn, Turn]] = []
    start = time.monotonic()
    speedup: Interval | None = None
    with _without_collector():
        while len(pairs) < plan.max_turns:
            spent_s = time.monotonic() - start
            if spent_s > plan.longest_s or (spent_s > plan.budget_s and len(pairs) >= plan.min_turns):
                break
            if len(pairs) % 2:
                late, early = after.turn(), before.turn()
            else:
                early, late = before.turn(), after.turn()
            pairs.append((early, late))
            on_turn(len(pairs), plan.max_turns)
            if len(pairs) >= plan.min_turns:
                speedup = median_interval([new.rate / old.rate for old, new in pairs], SEQUENTIAL_CONFIDENCE)
                if speedup is not None and _is_known(speedup, plan, time.monotonic() - start):
                    break
    if not pairs:
        raise CannotMeasure("there was no time left for a turn")
    verdict, note = judge(speedup)
    return Measurement(
        verdict,
        speedup,
        statistics.median(old.rate for old, _ in pairs),
        statistics.median(new.rate for _, new in pairs),
        len(pairs),
        note,
    )


def _is_known(speedup: Interval, plan: Plan, spent_s: float) -> bool:
    """Whether the stopping rule holds."""
    reach = max(speedup.high - speedup.value, speedup.value - speedup.low)
    if reach <= max(plan.half_width * speedup.value, plan.gain_share * abs(speedup.value - 1)):
        return True
    # of a loss, the reciprocals: 0.5 is as far from 1 as 2.0
    gain, certain = (speedup.value, speedup.low) if speedup.value > 1 else (1 / speedup.value, 1 / speedup.high)
    return spent_s >= plan.clear_s and certain - 1 >= plan.clear_share * (gain - 1)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
