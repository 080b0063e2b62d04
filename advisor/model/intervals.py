"""Computes the 95 % confidence intervals of all measurements: means of consecutive steps and medians of independent runs.

In: numbers.  Out: intervals that cover the true value in at least 93 of 100 cases at the sample sizes used
(`tests/model/test_intervals.py` simulates each case).

The steps of one run are not independent: a buffer may run empty for a while, or a background job may start and stop. The error of
their mean is therefore estimated from up to 10 stretches of consecutive steps and from the correlation of neighbouring stretches.
This assumes that the dependence decays within a few stretches. Simulations cover correlations of neighbouring steps up to 0.8
with at least 20 steps, and up to 0.3 with fewer steps or if a window closed early because its mean seemed precise. Separate runs,
and the turns of a trial, are independent.
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
"""Level for measurements that stop once their interval is narrow; repeated checks reduce the coverage by up to 2 %. Simulated
with the stopping rule of `advisor.prove.trial.ab_benchmark`: the coverage is 93.5 % at 0.95 and 95.3 % at this level."""
STRETCHES = 10
"""Maximum number of stretches that a series is divided into."""
MIN_VALUES = 4
"""Minimum number of consecutive values for an interval of their mean."""
MIN_STEPS = 8
"""Minimum number of consecutive steps for an interval of their median."""
_MIN_CORRELATED = 5
"""Minimum number of stretches for an estimate of the correlation."""
_MAX_CORRELATION = 0.8
"""Maximum correlation of neighbouring stretches; a higher estimate from 10 stretches is noise or a trend."""


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of consecutive values with its standard error."""

    value: float
    error: float
    """Standard error, relative to the mean."""
    stretches: int
    """Effective number of independent stretches behind the error; at least 2."""

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval, relative to the mean."""
        return t_quantile(self.stretches - 1) * self.error


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean of consecutive values; None for fewer than 4 values or a mean of 0 or less."""
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
    """Return the ratio `before` / `after` of two independent means.

    The 95 % interval is computed on the log scale with Welch's degrees of freedom.
    """
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
    """Return the 95 % interval of the median of consecutive values.

    The bounds are order statistics. Their ranks follow from the uncertainty of the share of values below the median. The interval
    is never narrower than the exact interval for independent values.

    Returns:
        (low, high, effective number of independent stretches), or None for fewer than 8 values.
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
    """Return the median of independent values with its exact interval; None for fewer than 6 values at 95 %.

    The interval assumes no distribution: the population median is below each value with probability 1/2.
    """
    rank = interval_rank(len(values), confidence)
    if rank is None:
        return None
    ordered = sorted(values)
    return Interval(statistics.median(ordered), ordered[rank], ordered[-1 - rank])


@lru_cache(maxsize=1024)
def interval_rank(count: int, confidence: float = CONFIDENCE) -> int | None:
    """Return the number of values to exclude on each side for an interval of the median; None if `count` is too small.

    With `rank` values excluded on each side, the interval misses the median with probability
    2 * P(Binomial(count, 1/2) <= rank).
    """
    missed, best = 0.0, None
    term = 2.0 * 0.5**count if count < 1000 else 0.0
    if not term:  # the binomial underflows; the normal approximation is exact to one rank
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
    """Means of up to 10 stretches of equal length; the remainder at the end is ignored."""
    stretches = min(STRETCHES, len(values) // 2)
    length = len(values) // stretches
    return [statistics.fmean(values[n * length : (n + 1) * length]) for n in range(stretches)]


def _error_of_mean(means: Sequence[float]) -> tuple[float, int]:
    """Standard error of the mean of consecutive stretches, and their effective number.

    With first autocorrelation r (corrected for bias), n stretches count as n * (1 - r) / (1 + r) independent ones.
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


# -- Student's t distribution, for integer degrees of freedom


@lru_cache(maxsize=256)
def t_quantile(freedom: int, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t distribution.

    Closed forms for integer degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4), solved for t by bisection. SciPy is
    avoided, because it would be imported into the user's training process for this one number.

    Args:
        freedom: Degrees of freedom, at least 1.
        confidence: Probability of values between minus and plus the quantile.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
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
