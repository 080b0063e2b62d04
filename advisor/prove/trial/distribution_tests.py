"""How alike streams of elements are, as far as their digests and figures tell.

In: `Stream`s or columns of them.  Out: shares, kinds of variation, whether figures are of one distribution,
and what so few elements could have shown at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from advisor.prove.trial.element_digests import Row, Stream

P_VALUE = 1e-6
"""Figures of one distribution are taken for two once in a million; some ten comparisons are made per trial."""

SMALLEST_SAMPLE = math.ceil(math.log(2.0 / P_VALUE))
"""Below this many figures in each of two samples `kolmogorov_smirnov` cannot fall below `P_VALUE`, whatever they are."""
SMALLEST_ORDER = next(n for n in range(1, 100) if 1.0 / math.factorial(n) < P_VALUE)
"""Fewer elements come in their order by chance more often than `P_VALUE` if that order is random."""


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


class Likeness(Enum):
    """What a comparison of two samples says."""

    LIKE = "like"
    OTHER = "other"
    UNDECIDED = "undecided"
    """Not even the greatest difference could have shown in so few elements."""


def smallest_p(one: int, two: int) -> float:
    """The smallest p-value that `kolmogorov_smirnov` can give for samples of these sizes: that of samples without overlap."""
    return min(1.0, 2.0 * math.exp(-2.0 * one * two / (one + two))) if one and two else 1.0


def smallest_visible_share(one: int, two: int) -> float:
    """The smallest difference of two distributions that is seen at these sample sizes, as a share of the values, 0 to 1; above 1:
    none is.
    """
    return math.sqrt(math.log(2.0 / P_VALUE) * (one + two) / (2.0 * one * two)) if one and two else math.inf


def likeness(one: Stream, two: Stream, new: Stream, component: int) -> Likeness:
    """Two-sample Kolmogorov-Smirnov tests on each figure of a component: those of `new` against the original's.

    `one` and `two` are the original with different seeds. To be like one of them, or like both together, is enough: where an
    order is drawn once and then stays (`sample_from_datasets`), the batches of one seed are not those of another.

    Of texts and datasets only the digests tell, and only where the same values come again and again: their places among all
    digests are then compared like a figure.
    """
    kind = one.kinds[component] if component < len(one.kinds) else ""
    first, second, third = (_samples(stream, component, kind) for stream in (one, two, new))
    if any(smallest_p(len(sample), len(third)) >= P_VALUE for sample in (first, second)):
        return Likeness.UNDECIDED
    if kind != "numbers" and not _comes_again(one.column(component), two.column(component)):
        return Likeness.UNDECIDED
    widths = {len(sample[0]) for sample in (first, second, third)}
    if len(widths) > 1:
        return Likeness.OTHER
    if widths == {0}:
        return Likeness.UNDECIDED
    is_like = all(
        any(
            kolmogorov_smirnov([f[k] for f in old], [f[k] for f in third]) >= P_VALUE
            for old in (first, second, [*first, *second])
        )
        for k in range(widths.pop())
    )
    return Likeness.LIKE if is_like else Likeness.OTHER


def pairing(one: Stream, two: Stream, new: Stream, component: int, other: int) -> Likeness:
    """Whether two components of `new` belong together as in the original: tests on the sums and differences of their ranks, which
    are distributed otherwise where one component no longer depends on the other.
    """
    is_of_numbers = [one.kinds[place : place + 1] == ("numbers",) for place in (component, other)]
    if not all(is_of_numbers) or any(smallest_p(len(old.rows), len(new.rows)) >= P_VALUE for old in (one, two)):
        return Likeness.UNDECIDED
    import numpy as np

    means = [
        np.array([[row[component][0], row[other][0]] for row in stream.figures if row[component] and row[other]])
        for stream in (one, two, new)
    ]
    if any(len(mean) < SMALLEST_SAMPLE for mean in means):
        return Likeness.UNDECIDED
    reference = np.sort(np.concatenate(means[:2]), axis=0)
    ranks = [
        np.stack([np.searchsorted(reference[:, side], mean[:, side], "right") for side in (0, 1)], axis=1)
        for mean in means
    ]
    for sign in (1, -1):
        first, second, third = ((rank[:, 0] + sign * rank[:, 1]).tolist() for rank in ranks)
        if all(kolmogorov_smirnov(old, third) < P_VALUE for old in (first, second, first + second)):
            return Likeness.OTHER
    return Likeness.LIKE


def _samples(stream: Stream, component: int, kind: str) -> list[tuple[float, ...]]:
    if kind == "numbers":
        return [figures[component] for figures in stream.figures]
    return [
        (*figures[component], int.from_bytes(row[component][:6], "big") / 2**48)
        for row, figures in zip(stream.rows, stream.figures, strict=True)
    ]


def _comes_again(one: Sequence[bytes], two: Sequence[bytes]) -> bool:
    """Whether two draws hold mostly the same values, so that others would be seen."""
    return len(set(one) & set(two)) > 0.5 * len(set(one) | set(two))


def probability_of_counts(one: int, two: int, share: float) -> float:
    """Two-sided probability of counts as uneven as these if each counted element is one of `one` with probability `share`: the
    exact conditional test of two Poisson counts (Przyborowski and Wilenski, 1940). The smaller tail is doubled.
    """
    total = one + two
    if not total:
        return 1.0
    terms = [
        math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1)
        + k * math.log(share) + (total - k) * math.log1p(-share)
        for k in (range(one + 1) if one <= total * share else range(one, total + 1))
    ]  # fmt: skip
    return min(1.0, 2.0 * math.fsum(map(math.exp, terms)))


def smallest_visible_loss(usual: int, share: float) -> float:
    """Share of the elements that has to be missing, 0 to 1, for `probability_of_counts` to fall below `P_VALUE`.

    `usual`: elements counted of the original; `share`: as above.
    """
    expected = usual * share / (1.0 - share)
    low, high = 0, math.ceil(expected)
    if probability_of_counts(0, usual, share) >= P_VALUE:
        return 1.0
    while high - low > 1:  # the largest count that is still refused
        middle = (low + high) // 2
        low, high = (middle, high) if probability_of_counts(middle, usual, share) < P_VALUE else (low, middle)
    return 1.0 - low / expected


def loss_is_visible(sample: Sequence[Row], rows: Counter[Row]) -> bool:
    """Whether enough elements of a sample are unique, so that half of all elements could not be lost unseen."""
    unique = sum(rows[row] == 1 for row in sample)
    return 0.5**unique < P_VALUE


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
