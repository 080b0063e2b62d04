"""The median of many durations: exact for few, close for many, and the same however they are grouped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.statistics import durations
from advisor.statistics.durations import Durations

values = st.lists(st.integers(1, 10**9), min_size=1, max_size=30)


def of(numbers: list[int]) -> Durations:
    result = Durations()
    result.add(np.array(numbers, np.int64))
    return result


def merged(parts: list[Durations]) -> Durations:
    result = Durations()
    for part in parts:
        result.merge(part)
    return result


def test_without_durations_there_is_no_median():
    assert Durations().median() is None


@given(st.lists(values, min_size=1, max_size=6))
def test_few_durations_have_the_exact_median(groups):
    assert merged([of(group) for group in groups]).median() == int(np.median(np.concatenate(groups)))


@given(st.lists(values, min_size=2, max_size=6), st.integers(1, 40))
def test_groups_do_not_matter(groups, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durations, "MAX_EXACT", most)
        parts = [of(group) for group in groups]
        left = merged(parts)
        right = merged([parts[0], merged(parts[1:])])
        flat = of([number for group in groups for number in group])
    assert left.median() == right.median() == flat.median()
    assert (left.bins, left.count) == (right.bins, right.count) == (flat.bins, flat.count)


@given(values)
def test_many_durations_have_a_median_within_half_a_percent(numbers):
    numbers = [*numbers, *numbers, numbers[0]]  # an odd number, whose median is one of them
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durations, "MAX_EXACT", 1)
        median = of(numbers).median()
    exact = np.median(numbers)
    assert abs(median - exact) <= 0.005 * exact + 0.51, "half the width of a bin, and the rounding to whole ns"
