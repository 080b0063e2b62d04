"""The test that compares whole scripts: error rates, power and coverage by simulation, and when it stops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advisor.host.calibration.proof import WORTHWHILE as SMALLEST_GAIN
from advisor.model.intervals import median_interval
from advisor.model.sequential_test import (
    CLEAR,
    CURTAILED,
    FUTILE,
    LAST,
    LOOKS,
    MAX_PAIRS,
    decide,
    interval_at,
    is_nearly_clear,
)
from advisor.prove.trial.trial_result import FASTER, SLOWER, judge

WORTHWHILE = SMALLEST_GAIN.value
RUNS = 2000


def _normal(draw):
    return np.exp(draw.normal(0, 0.05, (MAX_PAIRS, 2)))


def _heavy(draw):
    """Student's t with 3 degrees of freedom on the log scale: now and then a run of many times the usual length."""
    return np.exp(0.05 * draw.standard_t(3, (MAX_PAIRS, 2)))


def _drifting(draw):
    """The machine becomes slower by a half in the course of the runs, which alternate: before, after, after, before, ..."""
    order = np.array(
        [(2 * pair, 2 * pair + 1) if pair % 2 == 0 else (2 * pair + 1, 2 * pair) for pair in range(MAX_PAIRS)]
    )
    return np.exp(draw.normal(0, 0.03, (MAX_PAIRS, 2))) * (1 + 0.5 * order / (2 * MAX_PAIRS))


def _burst(draw):
    """In one run of five, other work on the machine takes up to half of it."""
    load = draw.uniform(1, 2, (MAX_PAIRS, 2)) ** (draw.uniform(0, 1, (MAX_PAIRS, 2)) < 0.2)
    return np.exp(draw.normal(0, 0.03, (MAX_PAIRS, 2))) * load


KINDS = (_normal, *(pytest.param(kind, marks=pytest.mark.long) for kind in (_heavy, _drifting, _burst)))


def run(times, speedup=1.0, **options):
    """The decision on these (before, after) times, and the number of pairs it took."""
    ratios = (times[:, 0] * speedup / times[:, 1]).tolist()
    for count in range(1, MAX_PAIRS + 1):
        decision = decide(ratios[:count], WORTHWHILE, **options)
        if decision is not None:
            return decision, count
    raise AssertionError("it never stopped")


def simulated(kind, speedup=1.0, **options):
    draw = np.random.default_rng(7)
    return [run(kind(draw), speedup, **options) for _ in range(RUNS)]


def test_a_test_of_fewer_pairs_ends_at_its_last_look():
    ratios = [1.0, 1.3, 1.1, 1.2]
    assert decide(ratios, WORTHWHILE, may_give_up=False) is None
    decision = decide(ratios, WORTHWHILE, may_give_up=False, most_pairs=4)
    assert decision is not None and decision.reason == LAST


def test_a_test_of_fewer_pairs_gives_up_if_those_could_not_make_it_clear():
    ratios = [1.0, 1.3, 1.1]
    assert decide(ratios, WORTHWHILE) is None
    decision = decide(ratios, WORTHWHILE, most_pairs=4)
    assert decision is not None and decision.reason == CURTAILED


def test_four_pairs_show_fifteen_percent_if_runs_vary_by_two():
    """The reason of `PAIRS_OF_DIFFERENT_DATA`."""
    draw = np.random.default_rng(3)
    decisions = [run(np.exp(draw.normal(0, 0.02, (MAX_PAIRS, 2))), 1.15, most_pairs=4)[0] for _ in range(400)]
    assert sum(decision.reason == CLEAR for decision in decisions) / len(decisions) > 0.5


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_identical_scripts_are_rarely_told_apart(kind):
    decisions = [decision for decision, _ in simulated(kind)]
    clear = [decision for decision in decisions if decision.reason == CLEAR]
    assert len(clear) / RUNS <= 0.022
    told = [one for one in clear if judge(one.speedup)[0] in (FASTER, SLOWER)]
    assert len(told) / RUNS <= 0.016


@pytest.mark.parametrize(
    "speedup", [pytest.param(1.0, marks=pytest.mark.long), 1.3, pytest.param(2.0, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_holds_the_true_ratio(kind, speedup):
    held = [decision.speedup.low <= speedup <= decision.speedup.high for decision, _ in simulated(kind, speedup)]
    assert sum(held) / RUNS >= 0.978


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("speedup", [1.0, 1.1, 1.3])
def test_the_exact_interval_of_the_median_is_wrong_about_as_rarely(kind, speedup):
    """It has 6 or 8 pairs; where a test stopped because of its result, it holds the true ratio less often than in 95 %."""
    draw, reported, missed = np.random.default_rng(7), 0, 0
    for _ in range(RUNS):
        times = kind(draw)
        _, count = run(times, speedup)
        interval = median_interval((times[:count, 0] * speedup / times[:count, 1]).tolist())
        reported += interval is not None
        missed += interval is not None and not interval.low <= speedup <= interval.high
    assert missed / RUNS <= 0.025
    assert reported and missed / reported <= 0.085


@pytest.mark.long
def test_a_clear_gain_takes_few_pairs_and_a_small_one_is_found_too():
    def steady(draw):
        return np.exp(draw.normal(0, 0.02, (MAX_PAIRS, 2)))

    runs_at = {speedup: simulated(steady, speedup) for speedup in (1.1, 1.3, 2.0)}
    shares = {speedup: sum(one.speedup.low > 1 for one, _ in runs) / RUNS for speedup, runs in runs_at.items()}
    pairs = {speedup: float(np.mean([count for _, count in runs])) for speedup, runs in runs_at.items()}
    assert shares[1.1] > 0.9 and shares[1.3] > 0.99 and shares[2.0] > 0.99
    assert pairs[2.0] < 3.2 and pairs[1.3] < 4.2


@pytest.mark.long
@pytest.mark.parametrize("share", [0.8, 1.25])
def test_a_first_pair_under_other_conditions_errs_no_more_and_costs_more_pairs(share):
    """The first run of one side is made when the data are not in memory yet, or minutes before the other one."""

    def steady(draw):
        return np.exp(draw.normal(0, 0.03, (MAX_PAIRS, 2)))

    def late(draw):
        times = steady(draw)
        times[0, 1] *= share
        return times

    clear = [decision for decision, _ in simulated(late) if decision.reason == CLEAR]
    assert len(clear) / RUNS <= 0.022
    pairs, usual = (np.mean([count for _, count in simulated(kind, 1.3)]) for kind in (late, steady))
    assert pairs - usual > 0.5  # a pair has two runs; one would be saved


@pytest.mark.long
def test_identical_scripts_do_not_take_all_pairs():
    counts = [count for _, count in simulated(_normal)]
    assert np.mean(counts) < 6


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_who_asks_for_a_gain_only_needs_fewer_pairs_and_errs_no_more(kind):
    same, slower, faster = (simulated(kind, speedup, is_gain_only=True) for speedup in (1.0, 1 / 1.3, 1.1))
    told = [decision for decision, _ in same if decision.reason == CLEAR]
    assert len(told) / RUNS <= 0.022
    for speedup, runs in ((1.0, same), (1 / 1.3, slower), (1.1, faster)):
        held = [decision.speedup.low <= speedup <= decision.speedup.high for decision, _ in runs]
        assert sum(held) / RUNS >= 0.978
    assert sum(judge(decision.speedup)[0] == FASTER for decision, _ in slower) == 0
    lost = [decision for decision, _ in faster if decision.reason == FUTILE]
    assert len(lost) / RUNS <= 0.011  # the upper side of all looks
    assert np.mean([count for _, count in slower]) < np.mean([count for _, count in simulated(kind, 1 / 1.3)])


def test_a_loss_is_not_told_from_no_effect_if_only_a_gain_counts():
    ratios = [0.92, 0.9, 0.94, 0.88]
    assert decide(ratios[:3], WORTHWHILE) is None
    assert decide(ratios, WORTHWHILE) is None
    decision = decide(ratios, WORTHWHILE, is_gain_only=True)
    assert decision is not None and decision.reason == FUTILE and decision.speedup.low < 1 / WORTHWHILE


@pytest.mark.parametrize(
    ("ratios", "reason", "pairs"),
    [
        ([2.0, 2.01, 1.99], CLEAR, 3),
        ([0.5, 0.505, 0.495], CLEAR, 3),
        ([1.0, 1.001, 0.999], FUTILE, 3),
        ([1.0, 1.2, 0.8], CURTAILED, 3),
        ([1.1, 1.14, 1.2, 1.02, 1.0, 1.12, 1.1, 1.0], LAST, 8),
    ],
)
def test_when_it_stops_and_why(ratios, reason, pairs):
    decisions = [decide(ratios[:count], WORTHWHILE) for count in range(1, len(ratios) + 1)]
    assert [decision is None for decision in decisions[: pairs - 1]] == [True] * (pairs - 1)
    decision = decisions[pairs - 1]
    assert decision is not None and decision.reason == reason
    assert decision.is_early == (reason != LAST)


def test_who_asks_whether_two_scripts_are_the_same_gets_more_pairs():
    ratios = [1.0, 1.2, 0.8, 1.0, 1.01, 0.99, 1.0, 1.0]
    decisions = [decide(ratios[:count], WORTHWHILE, may_give_up=False) for count in range(1, 9)]
    assert decisions[:7] == [None] * 7
    assert decisions[7] is not None and decisions[7].reason == LAST
    assert decide(ratios[:3], WORTHWHILE) is not None


def test_intervals_are_those_of_students_t_on_the_log_scale():
    # log ratios 1, 2, 3: mean 2, standard deviation 1; the quantile of t with 2 degrees of freedom at 0.975 is 4.3027
    interval = interval_at([math.e, math.e**2, math.e**3], 0.025)
    assert interval.value == pytest.approx(math.e**2)
    assert math.log(interval.low) == pytest.approx(2 - 4.3027 / math.sqrt(3), abs=1e-4)
    assert math.log(interval.high) == pytest.approx(2 + 4.3027 / math.sqrt(3), abs=1e-4)


def test_all_looks_together_miss_as_often_as_the_documentation_says():
    assert 2 * sum(look.error for look in LOOKS) == pytest.approx(0.022)
    assert [look.pairs for look in LOOKS] == [3, 4, 6, 8]


def test_a_test_is_nearly_clear_if_more_pairs_like_the_median_decide() -> None:
    assert is_nearly_clear((5.5, 7.0, 9.0))  # between 0.75x and 66x
    assert is_nearly_clear((1 / 5.5, 1 / 7.0, 1 / 9.0))
    assert not is_nearly_clear((1.12, 1.4, 1.12))
    assert is_nearly_clear((1.12, 1.4, 1.12, 1.4))
    assert not is_nearly_clear((0.98, 1.02, 0.99, 1.01))
    assert not is_nearly_clear((1.2,) * 4 + (1.3,) * 4)  # there is no further look
