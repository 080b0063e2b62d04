"""Outliers by the modified z-score, which the outliers themselves cannot move (Iglewicz and Hoaglin, 1993).

In: numbers.  Out: their median and its robust deviation; how many deviations make an outlier.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

DEVIATIONS = 3.5
"""Threshold in robust deviations from the median: the usual one for the modified z-score."""
MAD_TO_SIGMA = 1.4826
"""Factor from the median absolute deviation to the standard deviation of a normal distribution."""


def median_and_deviation(values: Iterable[float]) -> tuple[float, float]:
    """Return the median of at least one value and the robust deviation from it, in the unit of the values."""
    listed = list(values)
    middle = median(listed)
    return middle, MAD_TO_SIGMA * median(abs(value - middle) for value in listed)
