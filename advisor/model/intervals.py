"""The 95 % intervals of everything that is measured: means of steps in a row, medians of independent runs.

In: numbers.  Out: intervals that hold the true value at least 93 times in 100, at the sample sizes that are used
(`tests/model/test_intervals.py` simulates each).

Steps of one run are not independent: a buffer runs empty for a while, a background job comes and goes. Their mean is therefore
judged by up to 10 stretches of consecutive steps, and by how much neighbouring stretches resemble each other. Assumptions: the
dependence dies away within a few stretches (simulated: correlations of neighbouring steps up to 0.8 from 20 steps on); with fewer
than 20 steps, and where a window closed early because its mean seemed to be known, up to 0.3. Runs, and turns of a trial, are
independent of each other.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from advisor.model.outcome import Interval

CONFIDENCE = 0.95
SEQUENTIAL_CONFIDENCE = 0.965
"""For a measurement that stops once its interval is narrow: looking again and again costs up to 2 of 100. [Simulated with
the rule of `advisor.prove.trial.ab_benchmark`: at 0.95 the true ratio is held 93.5 times in 100, at this level 95.3 times.]"""
STRETCHES = 10
"""A longer series is cut into so many stretches."""
MIN_VALUES = 4
"""Fewer values in a row have no interval."""
MIN_STEPS = 8
"""Fewer steps in a row have no interval of their median."""
_MIN_CORRELATED = 5
"""Fewer stretches do not show whether neighbours resemble each other."""
_MAX_CORRELATION = 0.8
"""Of neighbouring stretches; a higher estimate from 10 stretches is noise, or a trend."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of values in a row, and how well it is known."""

    value: float
    error: float
    """Standard error, as a share of the mean."""
    stretches: int
    """Independent stretches that the error rests on, at least 2."""

    @property
    def half_width(self) -> float:
        """Half the 95 % interval, as a share of the mean."""
        return t_quantile(self.stretches - 1) * self.error


def mean_of(values: Sequence[float]) -> Mean | None:
    """The mean of values in a row; None for fewer than 4 values or a mean of 0."""
    count = len(values)
    if count < MIN_VALUES:
        return None
    means = _stretch_means(values)
    mean = statistics.fmean(means)
    if mean <= 0:
        return None
    error, independent = _error_of_mean(means)
    return Mean(statistics.fmean(values), error / mean, independent)


def ratio_of(before: Mean, after: Mean) -> Interval:
    """`before` / `after`, two independent means, with its 95 % interval (Welch's degrees of freedom, on the log scale)."""
    squares = before.error**2, after.error**2
    error = math.sqrt(sum(squares))
    freedom = 1
    if error:
        parts = zip(squares, (before.stretches - 1, after.stretches - 1), strict=True)
        freedom = math.floor(error**4 / sum(square**2 / own for square, own in parts) + 1e-9)
    width = t_quantile(max(1, freedom)) * error
    ratio = before.value / after.value
    return Interval(ratio, ratio * math.exp(-width), ratio * math.exp(width))


def median_of_steps(values: Sequence[float]) -> tuple[float, float, int] | None:
    """(low, high, independent stretches) of the median of values in a row; None for fewer than 8.

    How uncertain it is which share of the values lies below the median tells which of the values bound the interval. Never
    narrower than the exact interval of independent values.
    """
    count = len(values)
    rank = interval_rank(count)
    if rank is None or count < MIN_STEPS:
        return None
    ordered = sorted(values)
    middle = statistics.median(ordered)
    shares = _stretch_means([float(value <= middle) for value in values])
    error, independent = _error_of_mean(shares)
    reach = t_quantile(independent - 1) * error
    rank = max(0, min(rank, math.floor(count * (0.5 - reach))))
    return ordered[rank], ordered[-1 - rank], independent


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Median of independent values and its exact interval; None for fewer than 6 values, for which there is none.

    No assumption on how the values are distributed: the median of the population lies below each value with probability 1/2.
    """
    rank = interval_rank(len(values), confidence)
    if rank is None:
        return None
    ordered = sorted(values)
    return Interval(statistics.median(ordered), ordered[rank], ordered[-1 - rank])


@lru_cache(maxsize=1024)
def interval_rank(count: int, confidence: float = CONFIDENCE) -> int | None:
    """How many of the smallest and of the largest values lie outside of the interval; None where even 0 is too many.

    With `rank` values cut off on each side the interval misses the median with probability 2 * P(Binomial(count, 1/2) <= rank).
    """
    missed, best = 0.0, None
    term = 2.0 * 0.5**count if count < 1000 else 0.0
    if not term:  # beyond the range of floats: the normal distribution is exact to a rank
        return max(
            0, math.floor(count / 2 - statistics.NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(count) / 2) - 1
        )
    for rank in range(count // 2 + 1):
        missed += term
        if missed > 1 - confidence:
            return best
        best = rank
        term *= (count - rank) / (rank + 1)
    return best


def _stretch_means(values: Sequence[float]) -> list[float]:
    """Means of up to 10 stretches of the same length; what is left over at the end is not in them."""
    stretches = min(STRETCHES, len(values) // 2)
    length = len(values) // stretches
    return [statistics.fmean(values[n * length : (n + 1) * length]) for n in range(stretches)]


def _error_of_mean(means: Sequence[float]) -> tuple[float, int]:
    """(standard error of the mean of stretches in a row, how many independent stretches they are worth).

    Neighbours that resemble each other (first autocorrelation r, corrected for its bias) are worth fewer: n * (1 - r) / (1 + r).
    """
    count = len(means)
    deviation = statistics.stdev(means)
    if not deviation:
        return 0.0, count
    inflation = 1.0
    if count >= _MIN_CORRELATED:
        mean = statistics.fmean(means)
        distances = [value - mean for value in means]
        products = sum(a * b for a, b in pairwise(distances))
        correlation = products / sum(distance**2 for distance in distances)
        correlation = min(_MAX_CORRELATION, max(0.0, correlation + (1 + 3 * correlation) / count))
        inflation = (1 + correlation) / (1 - correlation)
    return deviation / math.sqrt(count) * math.sqrt(inflation), max(2, math.floor(count / inflation))


# -- Student's t distribution, for whole degrees of freedom


@lru_cache(maxsize=256)
def t_quantile(freedom: int) -> float:
    """The value that |t| stays below with probability 0.95.

    Closed forms for whole degrees of freedom: Abramowitz and Stegun, 26.7.3 and 26.7.4, solved for t by bisection. No library:
    SciPy would have to be imported into the user's training process for this one number.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < CONFIDENCE:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < CONFIDENCE else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """P(|T| <= t)."""
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range((freedom - 1) // 2 if is_odd else freedom // 2):
        total += term
        numerator = 2 * step + (2 if is_odd else 1)
        term *= square * numerator / (numerator + 1)
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
