from __future__ import annotations

import random

import pytest

from advisor.model.intervals import interval_rank, median_interval


@pytest.mark.parametrize(("count", "rank"), [(5, None), (6, 0), (8, 0), (9, 1), (12, 2), (15, 3), (17, 4), (20, 5)])
def test_ranks_are_those_of_the_tables(count, rank):
    # E.g. Conover, Practical Nonparametric Statistics: confidence intervals for the median.
    assert interval_rank(count) == rank


def test_too_few_values_have_no_interval():
    assert median_interval([1.0] * 5) is None


def test_interval_holds_the_median_95_times_in_100():
    draw = random.Random(1)
    hits = 0
    for _ in range(2000):
        interval = median_interval([draw.expovariate(1.0) for _ in range(9)])  # skewed: no normal interval would do
        hits += interval.low <= 0.6931 <= interval.high
    assert hits / 2000 >= 0.95


def test_one_wild_turn_does_not_move_the_median_much():
    calm = median_interval([1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.0, 1.01, 1.02])
    wild = median_interval([1.0, 1.01, 1.02, 1.0, 1.01, 1.02, 1.0, 1.01, 50.0])
    assert wild.value == pytest.approx(calm.value, abs=0.02)
    assert wild.high == calm.high == 1.02
