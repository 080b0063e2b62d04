"""A paired test that may stop early: after each planned number of pairs it decides whether the answer is clear.

In: the ratios of the pairs so far.  Out: `Decision`, or None if more pairs are needed.

The looks and their error rates are fixed in advance. A look tests the mean of the logarithms of the ratios with Student's t; its
interval has the level of that look, so that all intervals together miss the true ratio in at most 2.2 % of the cases (the sum of
both sides of all looks). `tests/model/test_sequential_test.py` simulates the error rates for normal and heavy-tailed noise, a
machine that slows down, and bursts of foreign load.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.intervals import t_quantile
from advisor.model.outcome import Interval
from advisor.model.paired_test import CLEAR, CURTAILED, FUTILE, LAST


@dataclass(frozen=True, slots=True)
class Look:
    """A number of pairs after which the test may stop."""

    pairs: int
    error: float
    """Probability that the interval lies above (or below) the true ratio."""


LOOKS = (Look(3, 0.002), Look(4, 0.002), Look(6, 0.003), Look(8, 0.004))
"""The first look needs an effect of about nine standard deviations of a pair's ratio, such as 1.3x with runs that vary by 2 %."""
MAX_PAIRS = LOOKS[-1].pairs
MIN_PAIRS = LOOKS[0].pairs


@dataclass(frozen=True, slots=True)
class Decision:
    """The end of a test."""

    speedup: Interval
    """Median of the ratios, with the interval of the look at which the test stopped."""
    reason: str
    """One of `CLEAR`, `FUTILE`, `CURTAILED`, `LAST`."""

    @property
    def is_early(self) -> bool:
        """Whether the test stopped because of its result, so that its estimate is conditional on that: rather too large."""
        return self.reason != LAST


def decide(
    ratios: Sequence[float],
    worthwhile: float,
    may_give_up: bool = True,
    is_gain_only: bool = False,
    most_pairs: int = MAX_PAIRS,
) -> Decision | None:
    """Return the decision after these pairs; None if more are needed.

    Args:
        ratios: Time before / time after of each pair, in the order in which they were measured.
        worthwhile: The smallest gain that counts, such as 1.05; a loss counts from its inverse. 1.0 if every difference counts:
            then no result is `FUTILE`.
        may_give_up: Whether to stop when more pairs could not show a difference. They could still show that there is none, which
            only matters if the question is whether two versions are the same.
        is_gain_only: Whether to stop as soon as a worthwhile gain is excluded: a loss and no effect are the same then.
        most_pairs: The number of pairs at which the test ends, one of those in `LOOKS`, which is fixed in advance, too. Fewer
            looks only lower the error rates.
    """
    looks = [look for look in LOOKS if look.pairs <= most_pairs]
    look = next((look for look in looks if look.pairs == len(ratios)), None)
    if look is None:
        return None
    speedup = interval_at(ratios, look.error)
    if speedup.low > 1 or speedup.high < 1:
        return Decision(speedup, CLEAR)
    if look is looks[-1]:
        return Decision(speedup, LAST)
    if speedup.high < worthwhile and (is_gain_only or 1 / worthwhile < speedup.low):
        return Decision(speedup, FUTILE)
    if may_give_up and not any(_could_become_clear(ratios, following) for following in looks[looks.index(look) + 1 :]):
        return Decision(speedup, CURTAILED)
    return None


def pairs_at_next_look(pairs: int) -> int:
    """Return after how many pairs the test looks next, if so many are complete."""
    return next((look.pairs for look in LOOKS if look.pairs > pairs), MAX_PAIRS)


def is_look(pairs: int) -> bool:
    """Return whether the test looks after so many pairs."""
    return any(look.pairs == pairs for look in LOOKS)


def last_look(ratios: Sequence[float]) -> Interval | None:
    """Return the interval of the latest look that these pairs have reached, of which the error is spent; None before the first.

    Args:
        ratios: As for `decide`.
    """
    look = next((look for look in reversed(LOOKS) if look.pairs <= len(ratios)), None)
    return None if look is None else interval_at(ratios[: look.pairs], look.error)


def interval_at(ratios: Sequence[float], error: float) -> Interval:
    """Return the median of the ratios with the interval of their mean on the log scale, which misses by `error` on each side."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, middle = statistics.fmean(logs), statistics.median(ratios)
    reach = t_quantile(len(logs) - 1, 1 - 2 * error) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(middle, min(middle, math.exp(mean - reach)), max(middle, math.exp(mean + reach)))


def is_nearly_clear(ratios: Sequence[float]) -> bool:
    """Whether the next look would exclude 1 if the pairs until then were like the median of those so far."""
    look = next((look for look in LOOKS if look.pairs > len(ratios)), None)
    if look is None:
        return False
    speedup = interval_at([*ratios, *[statistics.median(ratios)] * (look.pairs - len(ratios))], look.error)
    return speedup.low > 1 or speedup.high < 1


def _could_become_clear(ratios: Sequence[float], look: Look) -> bool:
    """Whether the interval of a later look would exclude 1 if all pairs until then were like the best (or the worst) so far."""
    missing = look.pairs - len(ratios)
    for extreme in (max(ratios), min(ratios)):
        speedup = interval_at([*ratios, *[extreme] * missing], look.error)
        if speedup.low > 1 or speedup.high < 1:
            return True
    return False


__all__ = [
    "CLEAR",
    "CURTAILED",
    "FUTILE",
    "LAST",
    "LOOKS",
    "MAX_PAIRS",
    "MIN_PAIRS",
    "Decision",
    "Look",
    "decide",
    "interval_at",
    "is_look",
    "is_nearly_clear",
    "last_look",
    "pairs_at_next_look",
]
