"""How alike streams of elements are, as far as their digests and figures tell.

In: `Stream`s or columns of them.  Out: shares, kinds of variation, whether figures are of one distribution.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from advisor.verify.elements import Row, Stream

P_VALUE = 1e-6
"""Figures of one distribution are taken for two once in a million; some ten comparisons are made per trial."""


def variation(epochs: Sequence[list[bytes]]) -> int:
    """0: all epochs are equal; 1: equal but for their order; 2: they hold other values."""
    if all(epoch == epochs[0] for epoch in epochs):
        return 0
    first = Counter(epochs[0])
    return 1 if all(Counter(epoch) == first for epoch in epochs) else 2


def common_share(one: Counter[Row], two: Counter[Row]) -> float:
    """Share of the elements of `one`, 0 to 1, that both hold."""
    return (one & two).total() / max(1, one.total())


def has_moved(one: Sequence[Row], two: Sequence[Row]) -> bool:
    """Whether more of what both hold stands at other places in `two` than at the same: another order, not some other elements.

    Parallel calls that take their random numbers in the order in which they happen to run now and then give two elements each
    other's. All others stay where they were; where elements are like each other, the two may even seem to have changed places.
    """
    in_place = sum(old == new for old, new in zip(one, two, strict=False))
    return (Counter(one) & Counter(two)).total() - in_place > in_place


def is_same_distribution(one: Stream, two: Stream, new: Stream, component: int) -> bool:
    """Two-sample Kolmogorov-Smirnov tests on each figure of a component: those of `new` against the original's.

    `one` and `two` are the original with different seeds. To be like one of them, or like both together, is enough: where an
    order is drawn once and then stays (`sample_from_datasets`), the batches of one seed are not those of another.
    """
    first, second, third = ([f[component] for f in stream.figures if f[component]] for stream in (one, two, new))
    if not first or not third:
        return bool(first) == bool(third)
    return all(
        any(
            kolmogorov_smirnov([f[k] for f in old], [f[k] for f in third]) >= P_VALUE
            for old in (first, second, [*first, *second])
            if old
        )
        for k in range(len(third[0]))
    )


def kolmogorov_smirnov(one: Sequence[float], two: Sequence[float]) -> float:
    """Probability of two samples at least as different as these if both were of one distribution.

    Bounded from above by Massart's inequality for each sample, so small samples are never called different too easily.
    """
    import numpy as np

    a, b = np.sort(np.asarray(one, float)), np.sort(np.asarray(two, float))
    points = np.concatenate([a, b])
    distance = float(
        np.max(np.abs(np.searchsorted(a, points, "right") / len(a) - np.searchsorted(b, points, "right") / len(b)))
    )
    return min(1.0, 2.0 * math.exp(-2.0 * distance**2 * len(a) * len(b) / (len(a) + len(b))))
