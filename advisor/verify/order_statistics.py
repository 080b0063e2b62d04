"""The 95 % interval of a median without any assumption on how the values are spread.

In: independent values, one per turn.  Out: their median and two of the values as its interval (exact, from the binomial
distribution: the median of the population lies below each value with probability 1/2).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from advisor.model.outcome import Interval

CONFIDENCE = 0.95


def median_interval(values: Sequence[float]) -> Interval | None:
    """Median and interval; None for fewer than 6 values, for which no interval holds the median that surely."""
    rank = interval_rank(len(values))
    if rank is None:
        return None
    ordered = sorted(values)
    return Interval(statistics.median(ordered), ordered[rank], ordered[-1 - rank])


def interval_rank(count: int) -> int | None:
    """How many of the smallest and of the largest values lie outside of the interval; None where even 0 is too many.

    With `rank` values cut off on each side the interval misses the median with probability 2 * P(Binomial(count, 1/2) <= rank).
    """
    missed, best = 0.0, None
    for rank in range(count // 2 + 1):
        missed += 2 * math.comb(count, rank) / 2**count
        if missed > 1 - CONFIDENCE:
            return best
        best = rank
    return best
