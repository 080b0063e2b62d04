"""Slow periods: found while the script runs, with the steps between which they began, and nothing else found."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host.calibration.live import MIN_SLOWDOWN
from advisor.live.slow_periods import SlowPeriods
from tests.effort import examples
from tests.live.samples import START, S, consumer


def fed(step_ms, waits_ms=None, per_sample=50):
    """The periods, and at which samples they were reported."""
    periods, reported, done = SlowPeriods("c1"), [], 0
    for number, length in enumerate(step_ms):
        done += per_sample
        wait = None if waits_ms is None else waits_ms[number]
        changed = periods.add(START + number * S, consumer(done, per_sample, length, wait))
        if changed is not None:
            reported.append((number, changed))
    return periods.periods, reported


def test_a_change_is_dated_between_two_samples():
    (period,), ((at, first),) = fed([10.0] * 20 + [25.0] * 10, [1.0] * 20 + [15.5] * 10)
    assert at == 22  # the third slow sample
    assert first.consumer_id == "c1"
    assert (period.after_step, period.first_step) == (950, 1050)  # the change came after step 1000
    assert period.began_ns == START + 20 * S
    assert period.slowdown == pytest.approx(2.5)
    assert (period.wait_before_ns, period.wait_ns) == (1e6, 15.5e6)
    assert period.is_input
    assert period.last_step is None


def test_the_end_of_a_period_is_reported_once():
    (period,), reported = fed([10.0] * 20 + [25.0] * 10 + [10.0] * 10)
    assert [at for at, _ in reported] == [22, 32]
    assert period.last_step == 30 * 50
    assert not period.is_input


@pytest.mark.parametrize("length", [1, 2])
def test_single_pauses_are_no_period_and_do_not_become_usual(length):
    lengths = ([10.0] * 10 + [200.0] * length) * 6
    periods, _ = fed(lengths)
    assert periods == []


def test_a_pause_inside_a_slow_period_does_not_end_it():
    (period,), reported = fed([10.0] * 20 + [25.0] * 6 + [10.0] * 2 + [25.0] * 6)
    assert len(reported) == 1
    assert period.last_step is None


def test_two_periods():
    periods, _ = fed([10.0] * 10 + [30.0] * 5 + [10.0] * 10 + [30.0] * 5)
    assert [(period.after_step, period.last_step) for period in periods] == [(450, 750), (1200, None)]


def test_a_slow_start_is_what_is_usual_then_and_faster_steps_are_no_period():
    periods, _ = fed([30.0] * 10 + [10.0] * 30)
    assert periods == []


def test_steps_that_vary_need_a_larger_change():
    draw = random.Random(3)
    periods, _ = fed([draw.uniform(5, 15) for _ in range(300)])
    assert periods == []


@settings(max_examples=examples(200))
@given(
    st.lists(st.floats(0.97, 1.03), min_size=8, max_size=60),
    st.lists(st.floats(0.97, 1.03), min_size=4, max_size=60),
    st.floats(1.5, 20),
)
def test_every_change_by_half_is_found_and_dated_right(before, after, factor):
    periods, reported = fed([10 * length_ms for length_ms in before] + [10 * factor * length_ms for length_ms in after])
    (period,) = periods
    assert period.after_step < len(before) * 50 < period.first_step
    assert period.slowdown == pytest.approx(factor, rel=0.07)
    assert reported[0][0] == len(before) + 2


@settings(max_examples=examples(200))
@given(st.lists(st.floats(1, MIN_SLOWDOWN.value - 0.001), min_size=1, max_size=100))
def test_changes_below_the_smallest_are_never_reported(lengths):
    assert fed([10 * length_ms for length_ms in lengths]) == ([], [])
