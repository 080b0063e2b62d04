"""The median of very many durations in bounded memory.

In: durations in ns, host by host.  Out: `Durations`, which can be merged in any order with the same result.

All values are kept up to `MAX_EXACT`. Beyond that, they are counted in bins whose limits differ by 1 %, so that the median is
exact to half a percent.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from advisor.statistics.time_spans import Ints

MAX_EXACT = 1 << 20
"""Number of values that are kept as they are: 8 MB."""
_BINS_PER_E = 1 / math.log(1.01)
"""Bins for each factor of e."""


@dataclass(slots=True)
class Durations:
    """Durations in ns, at least 1 each."""

    exact: list[Ints] = field(default_factory=list)
    bins: Counter[int] = field(default_factory=Counter)
    """Number of values by bin; empty while all values are kept."""
    count: int = 0

    def add(self, values: Ints) -> None:
        """Add durations."""
        self.exact.append(values)
        self.count += len(values)
        self._limit()

    def merge(self, other: Durations) -> None:
        """Add other durations."""
        self.exact = [*self.exact, *other.exact]
        self.bins.update(other.bins)
        self.count += other.count
        self._limit()

    def median(self) -> int | None:
        """Return the median in ns; None without durations."""
        if not self.count:
            return None
        if not self.bins:
            return int(np.median(np.concatenate(self.exact)))
        below = 0
        for number, count in sorted(self.bins.items()):
            below += count
            if 2 * below >= self.count:
                return round(math.exp((number + 0.5) / _BINS_PER_E))
        return None

    def _limit(self) -> None:
        """Count the values in bins if there are too many."""
        if self.count <= MAX_EXACT:
            return
        for values in self.exact:
            numbers, counts = np.unique(np.floor(np.log(values) * _BINS_PER_E).astype(np.int64), return_counts=True)
            self.bins.update(dict(zip(numbers.tolist(), counts.tolist(), strict=True)))
        self.exact = []
