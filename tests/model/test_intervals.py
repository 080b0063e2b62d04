"""Every interval that is printed holds the true value at least 93 times in 100, at the sample sizes that are used."""

from __future__ import annotations

import itertools
import math
from contextlib import nullcontext
from statistics import NormalDist

import numpy as np
import pytest

from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import UNPROFILED_MAX_SECONDS, UNPROFILED_SECONDS
from advisor.model.intervals import interval_rank, mean_of, median_interval, median_of_steps, ratio_of, t_quantile
from advisor.prove.trial import ab_benchmark
from advisor.prove.trial.ab_benchmark import Measurement, measure
from advisor.prove.trial.ab_side import Plan, Turn

WANTED = 0.93
RUNS = 400
STEP_NS = 50e6


def _normal(draw, count):
    return draw.normal(1, 0.1, count)


def _lognormal(draw, count):
    return np.exp(draw.normal(0, 0.4, count))


def _heavy(draw, count):
    """Student's t with 3 degrees of freedom on the log scale: now and then a step of many times the usual length."""
    return np.exp(0.1 * draw.standard_t(3, count))


def _every_tenth(draw, count):
    """A cost that comes every tenth step, from anywhere in its cycle."""
    return 1 + 3.0 * ((np.arange(count) + draw.integers(10)) % 10 == 0) + draw.normal(0, 0.05, count)


def _correlated(share):
    def steps(draw, count):
        value, values = draw.normal(), []
        for noise in draw.normal(0, math.sqrt(1 - share**2), count):
            value = share * value + noise
            values.append(1 + 0.1 * value)
        return np.array(values)

    steps.__name__ = f"correlated {share}"
    return steps


_weak, _medium, _strong = _correlated(0.3), _correlated(0.6), _correlated(0.8)
KINDS = {
    # with fewer than 10 steps nothing shows their dependence: `advisor.model.intervals` says so
    4: (_normal, _lognormal, _heavy, _every_tenth, _weak),
    6: (_normal, _lognormal, _heavy, _every_tenth, _weak),
    10: (_normal, _lognormal, _heavy, _every_tenth, _weak),
    20: (_normal, _lognormal, _heavy, _every_tenth, _weak, _medium, _strong),
    60: (_normal, _lognormal, _heavy, _every_tenth, _weak, _medium, _strong),
    400: (_normal, _lognormal, _heavy, _every_tenth, _medium, _strong),
}
"""Number of steps -> how they are distributed."""
CASES = [(count, kind) for count, kinds in KINDS.items() for kind in kinds]
MEDIAN_CASES = [(8, kind) for kind in KINDS[6]] + [
    (count, kind) for count, kind in CASES if count >= 10 and (count, kind) != (20, _strong)
]
"""Stretches of two steps are too short for the strongest dependence."""


def _name(value):
    return str(getattr(value, "__name__", value))


def share_held(held):
    return np.mean([bool(value) for value in held])


@pytest.mark.parametrize(("count", "kind"), CASES, ids=_name)
def test_ratio_of_two_saved_runs(count, kind):
    draw = np.random.default_rng(count)

    def interval():
        return ratio_of(*(mean_of(kind(draw, count).tolist()) for _ in range(2)))

    intervals = [interval() for _ in range(RUNS)]
    assert share_held(one.low <= 1 <= one.high for one in intervals) >= WANTED


@pytest.mark.parametrize(
    "kind",
    [_normal, *(pytest.param(kind, marks=pytest.mark.long) for kind in (_lognormal, _heavy, _every_tenth, _weak))],
    ids=_name,
)
def test_ratio_of_two_runs_whose_windows_closed_once_their_mean_was_known(kind):
    """The window looks four times a second, and closes when it likes what it sees."""
    draw, limits = np.random.default_rng(7), Limits()

    def window():
        steps = STEP_NS * kind(draw, round(3 * UNPROFILED_MAX_SECONDS.value / (STEP_NS / 1e9)))
        ends_s = np.cumsum(steps) / 1e9
        for look_s in np.arange(UNPROFILED_SECONDS.value, 2 * UNPROFILED_MAX_SECONDS.value, 0.25):
            seen = steps[ends_s <= look_s].tolist()
            if limits.is_timed(seen, look_s):
                return mean_of(seen)
        raise AssertionError("it never closed")

    intervals = [ratio_of(window(), window()) for _ in range(RUNS)]
    assert share_held(one.low <= 1 <= one.high for one in intervals) >= WANTED


@pytest.mark.parametrize(("count", "kind"), MEDIAN_CASES, ids=_name)
def test_median_step(count, kind):
    draw = np.random.default_rng(count)
    # a step in ten costs more: the median is that of the other nine, cut where 50 % of all lie below
    others = NormalDist(1, 0.05).inv_cdf(0.5 / 0.9)
    median = others if kind is _every_tenth else 1.0
    intervals = [median_of_steps(kind(draw, count).tolist()) for _ in range(RUNS)]
    assert share_held(low <= median <= high for low, high, _ in intervals) >= WANTED


class _Side:
    """A pipeline of that rate, whose turns differ."""

    def __init__(self, rate, noise):
        self._rate, self._noise = rate, noise

    def turn(self):
        return Turn(1000, 1000 / self._rate * next(self._noise))


@pytest.mark.parametrize("speedup", [1.0, 2.0])
@pytest.mark.parametrize("spread", [0.02, 0.05, 0.07, 0.1, 0.15])
@pytest.mark.parametrize("is_heavy", [False, True])
@pytest.mark.parametrize("clear_s", [0.0, 1e9])
def test_ratio_of_pipelines_measured_until_it_is_known(speedup, spread, is_heavy, clear_s, monkeypatch):
    """After each pair the measurement may stop because it likes what it sees: `Plan`."""
    monkeypatch.setattr(ab_benchmark, "_without_collector", nullcontext)  # collects garbage, which takes its time
    draw = np.random.default_rng(5)
    noise = iter(np.exp(spread * (draw.standard_t(3, 60_000) if is_heavy else draw.normal(0, 1, 60_000))))
    plan = Plan(budget_s=1e9, longest_s=1e9, clear_s=clear_s)

    def measured() -> Measurement:
        return measure(_Side(1.0, noise), _Side(speedup, noise), plan)

    intervals = [measured().speedup for _ in range(RUNS)]
    assert share_held(one.low <= speedup <= one.high for one in intervals) >= WANTED


def test_intervals_are_no_wider_than_they_need_be():
    """Else an endless interval would pass."""
    draw = np.random.default_rng(1)
    means = [mean_of(_normal(draw, 60).tolist()) for _ in range(RUNS)]
    ideal = 2 * 0.1 / math.sqrt(60)
    assert np.median([mean.half_width for mean in means]) < 1.6 * ideal
    assert np.median([mean.stretches for mean in means]) >= 8
    strong = [mean_of(_strong(draw, 60).tolist()) for _ in range(RUNS)]
    assert np.median([mean.stretches for mean in strong]) <= 5, "neighbours resemble each other: fewer are independent"


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (18, 2.1009), (30, 2.0423)]
)
def test_quantiles_of_students_t(freedom, value):
    assert t_quantile(freedom) == pytest.approx(value, abs=5e-5)


def test_quantiles_approach_those_of_the_normal_distribution():
    quantiles = [t_quantile(freedom) for freedom in range(1, 200)]
    assert all(a > b for a, b in itertools.pairwise(quantiles))
    assert quantiles[-1] == pytest.approx(NormalDist().inv_cdf(0.975), abs=0.02)


def test_ranks_of_long_series_continue_those_of_short_ones():
    ranks = [interval_rank(count) for count in range(900, 1100)]
    assert all(0 <= b - a <= 2 for a, b in itertools.pairwise(ranks))
    assert interval_rank(100_000) == pytest.approx(50_000 - 1.96 * math.sqrt(100_000) / 2, abs=2)


def test_too_few_values():
    assert mean_of([1, 2, 3]) is None and mean_of([0, 0, 0, 0]) is None
    assert median_of_steps([1, 2, 3, 4, 5, 6, 7]) is None and median_interval([1.0] * 5) is None


def test_values_without_any_difference():
    mean = mean_of([5.0] * 20)
    assert (mean.value, mean.error, mean.stretches) == (5.0, 0.0, 10)
    assert (ratio_of(mean, mean).low, ratio_of(mean, mean).high) == (1.0, 1.0)
    assert median_of_steps([5.0] * 20) == (5.0, 5.0, 10)
