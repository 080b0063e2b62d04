"""Statistical tests on streams of elements.

In: `Stream`s or columns of them.  Out: shares, kinds of variation, whether samples have the same distribution, and the smallest
difference that samples of these sizes could have shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from enum import Enum

from advisor.prove.trial.elements.streams import Row, Stream

P_VALUE = 1e-6
"""Significance level of every test: two samples of one distribution are called different once in a million tests. Chosen: a trial
makes about ten tests, and a wrong alarm discards a fix. It depends on no machine."""

SMALLEST_SAMPLE = math.ceil(math.log(2.0 / P_VALUE))
"""Minimum size of two samples for which `kolmogorov_smirnov` can fall below `P_VALUE` at all."""
SMALLEST_ORDER = next(n for n in range(1, 100) if 1.0 / math.factorial(n) < P_VALUE)
"""Minimum number of elements for which a random order repeats itself with a probability below `P_VALUE`."""


def variation(epochs: Sequence[list[bytes]]) -> int:
    """Return how epochs differ: 0 if they are equal, 1 if only their order differs, 2 if their values differ."""
    if all(epoch == epochs[0] for epoch in epochs):
        return 0
    first = Counter(epochs[0])
    return 1 if all(Counter(epoch) == first for epoch in epochs) else 2


def common_share(one: Counter[Row], two: Counter[Row]) -> float:
    """Return the share of the elements of `one` (0 to 1) that are in `two`, too."""
    return (one & two).total() / max(1, one.total())


def has_moved(one: Sequence[Row], two: Sequence[Row]) -> bool:
    """Whether most of the common elements have another position in `two`: the order differs, not some of the elements.

    Parallel calls that draw random numbers in the order in which they happen to run sometimes swap the numbers of two elements.
    All other elements keep their positions; if elements resemble each other, the two may even seem to have swapped places.
    """
    in_place = sum(old == new for old, new in zip(one, two, strict=False))
    return (Counter(one) & Counter(two)).total() - in_place > in_place


def has_kept_places(one: Sequence[Row], two: Sequence[Row]) -> bool:
    """Whether every common element has the same position in `two`, and the others are new: none was moved, lost or added."""
    in_place = sum(old == new for old, new in zip(one, two, strict=False))
    return len(one) == len(two) and (Counter(one) & Counter(two)).total() == in_place


class Agreement(Enum):
    """The result of comparing two samples."""

    SAME = "same"
    DIFFERENT = "different"
    UNDECIDED = "undecided"
    """There are too few elements to show even the greatest possible difference."""


def smallest_p(one: int, two: int) -> float:
    """Return the smallest p-value that `kolmogorov_smirnov` can return for these sample sizes: that of disjoint samples."""
    return min(1.0, 2.0 * math.exp(-2.0 * one * two / (one + two))) if one and two else 1.0


def smallest_visible_share(one: int, two: int) -> float:
    """Return the smallest difference of two distributions that these sample sizes can show.

    Args:
        one: Size of the first sample.
        two: Size of the second sample.

    Returns:
        The maximum distance of the two distribution functions, as a share of the values from 0 to 1; above 1, no difference can
        be shown.
    """
    return math.sqrt(math.log(2.0 / P_VALUE) * (one + two) / (2.0 * one * two)) if one and two else math.inf


def compare_distributions(one: Stream, two: Stream, new: Stream, component: int) -> Agreement:
    """Compare the distribution of a component in `new` with the original's, by a Kolmogorov-Smirnov test on each of its figures.

    Of texts and datasets, only the digests can be compared, and only if most values recur: their positions among all digests are
    then compared like a figure.

    Args:
        one: The original pipeline.
        two: The original pipeline with other seeds.
        new: The edited pipeline. Agreement with `one`, with `two` or with both together is enough: if an order is drawn once and
            then stays (`sample_from_datasets`), the batches of one seed differ from those of another.
        component: Index of the component.
    """
    kind = one.kinds[component] if component < len(one.kinds) else ""
    first, second, third = (_samples(stream, component, kind) for stream in (one, two, new))
    if any(smallest_p(len(sample), len(third)) >= P_VALUE for sample in (first, second)):
        return Agreement.UNDECIDED
    if kind != "numbers" and not _mostly_recurs(one.column(component), two.column(component)):
        return Agreement.UNDECIDED
    widths = {len(sample[0]) for sample in (first, second, third)}
    if len(widths) > 1:
        return Agreement.DIFFERENT
    if widths == {0}:
        return Agreement.UNDECIDED
    is_like = all(
        any(
            kolmogorov_smirnov([f[k] for f in old], [f[k] for f in third]) >= P_VALUE
            for old in (first, second, [*first, *second])
        )
        for k in range(widths.pop())
    )
    return Agreement.SAME if is_like else Agreement.DIFFERENT


def compare_dependence(one: Stream, two: Stream, new: Stream, component: int, other: int) -> Agreement:
    """Compare how two components depend on each other (an image and its label) in `new` and in the original.

    The sums and the differences of their ranks are tested: their distributions change if the dependence is lost.

    Args:
        one: The original pipeline.
        two: The original pipeline with other seeds.
        new: The edited pipeline.
        component: Index of the first component.
        other: Index of the second component.
    """
    is_of_numbers = [one.kinds[place : place + 1] == ("numbers",) for place in (component, other)]
    if not all(is_of_numbers) or any(smallest_p(len(old.rows), len(new.rows)) >= P_VALUE for old in (one, two)):
        return Agreement.UNDECIDED
    import numpy as np

    means = [
        np.array([[row[component][0], row[other][0]] for row in stream.figures if row[component] and row[other]])
        for stream in (one, two, new)
    ]
    if any(len(mean) < SMALLEST_SAMPLE for mean in means):
        return Agreement.UNDECIDED
    reference = np.sort(np.concatenate(means[:2]), axis=0)
    ranks = [
        np.stack([np.searchsorted(reference[:, side], mean[:, side], "right") for side in (0, 1)], axis=1)
        for mean in means
    ]
    for sign in (1, -1):
        first, second, third = ((rank[:, 0] + sign * rank[:, 1]).tolist() for rank in ranks)
        if all(kolmogorov_smirnov(old, third) < P_VALUE for old in (first, second, first + second)):
            return Agreement.DIFFERENT
    return Agreement.SAME


def _samples(stream: Stream, component: int, kind: str) -> list[tuple[float, ...]]:
    if kind == "numbers":
        return [figures[component] for figures in stream.figures]
    return [
        (*figures[component], int.from_bytes(row[component][:6], "big") / 2**48)
        for row, figures in zip(stream.rows, stream.figures, strict=True)
    ]


def _mostly_recurs(one: Sequence[bytes], two: Sequence[bytes]) -> bool:
    """Whether two draws mostly have the same values, so that other values would be noticed."""
    return len(set(one) & set(two)) > 0.5 * len(set(one) | set(two))


def probability_of_counts(one: int, two: int, share: float) -> float:
    """Return the two-sided p-value of two counts: the exact conditional test of Przyborowski and Wilenski (1940).

    Args:
        one: The first count.
        two: The second count.
        share: Probability that a counted element belongs to `one` under the null hypothesis.

    Returns:
        Twice the smaller tail, at most 1.
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
    """Return the smallest loss for which `probability_of_counts` falls below `P_VALUE`.

    Args:
        usual: Number of elements counted in the original.
        share: See `probability_of_counts`.

    Returns:
        Share of the elements that has to be missing, 0 to 1.
    """
    expected = usual * share / (1.0 - share)
    low, high = 0, math.ceil(expected)
    if probability_of_counts(0, usual, share) >= P_VALUE:
        return 1.0
    while high - low > 1:  # finds the largest count that is still significant
        middle = (low + high) // 2
        low, high = (middle, high) if probability_of_counts(middle, usual, share) < P_VALUE else (low, middle)
    return 1.0 - low / expected


def loss_is_visible(sample: Sequence[Row], rows: Counter[Row]) -> bool:
    """Whether enough elements of a sample are unique, so that the loss of half of all elements would be noticed."""
    unique = sum(rows[row] == 1 for row in sample)
    return 0.5**unique < P_VALUE


def kolmogorov_smirnov(one: Sequence[float], two: Sequence[float]) -> float:
    """Return the p-value of the two-sample Kolmogorov-Smirnov test.

    It is bounded from above by Massart's inequality for each sample, so that small samples are not called different too easily.
    """
    import numpy as np

    a, b = np.sort(np.asarray(one, float)), np.sort(np.asarray(two, float))
    points = np.concatenate([a, b])
    distance = float(
        np.max(np.abs(np.searchsorted(a, points, "right") / len(a) - np.searchsorted(b, points, "right") / len(b)))
    )
    return min(1.0, 2.0 * math.exp(-2.0 * distance**2 * len(a) * len(b) / (len(a) + len(b))))
