"""When the window opens and closes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.capture.instrument.consumers import MAX_STEPS, Consumers, ConsumerSteps
from advisor.capture.stop_script import StopScript
from advisor.capture.window.schedule import Limits, half_width, has_drained
from advisor.capture.window.time_left import TimeLeft, time_left
from advisor.host.calibration.window import (
    AFTER_WINDOW_FACTOR,
    AFTER_WINDOW_S,
    MAX_SECONDS,
    MIN_SECONDS,
    MIN_STEPS,
    RESTLESS_SECONDS,
    SHORT_SECONDS,
    SLOW_SECONDS,
    UNPROFILED_MAX_SECONDS,
    UNPROFILED_SECONDS,
    VERDICT_SECONDS,
    VERDICT_STEPS,
)
from tests.capture.window.monitors import Sessions, quiet_monitor

STEADY = [10_000_000] * 50


def test_warm_up_needs_steps_and_time():
    limits = Limits()
    assert not limits.is_settled(9, 5.0) and not limits.is_settled(500, 0.5) and limits.is_settled(10, 2.0)
    assert limits.is_settled(3, 10.0), "steps of seconds do not need ten of them"
    assert Limits(warmup=2).is_settled(2, 0.0) and not Limits(warmup=50).is_settled(49, 100.0)


def test_a_steady_loop_closes_as_stable():
    limits = Limits()
    assert limits.closing_reason(STEADY, MIN_SECONDS.value, None) == "stable"
    assert limits.closing_reason(STEADY, MIN_SECONDS.value - 0.1, None) is None
    assert limits.closing_reason(STEADY[: MIN_STEPS.value - 1], MIN_SECONDS.value, None) is None


def test_a_window_of_whole_epochs_goes_on_until_one_ends():
    limits = Limits(seconds=3.0, epoch_steps=20)
    assert limits.closing_reason(STEADY[:40], 2.9, None) is None
    assert limits.closing_reason(STEADY[:39], 3.0, None) is None
    assert limits.closing_reason(STEADY[:40], 3.0, None) == "seconds"
    assert limits.closing_reason(STEADY[:39], 6.0, None) == "seconds", "not longer than twice its time"
    assert Limits(seconds=3.0).closing_reason(STEADY[:39], 3.0, None) == "seconds"


def test_the_end_of_an_epoch_is_looked_for_only_when_it_may_close_the_window():
    limits = Limits(seconds=3.0, epoch_steps=20)
    assert limits.steps_to_check(25, 2.9) == math.inf
    assert [limits.steps_to_check(count, 3.1) for count in (25, 39, 40)] == [40, 40, 60]
    assert Limits(seconds=3.0).steps_to_check(25, 3.1) == math.inf
    assert Limits(steps=50, epoch_steps=20).steps_to_check() == 50


def test_a_restless_loop_runs_to_its_limit():
    restless = [1_000_000] * 25 + [50_000_000] * 25
    assert Limits().closing_reason(restless, RESTLESS_SECONDS.value - 0.1, None) is None
    assert Limits().closing_reason(restless, RESTLESS_SECONDS.value, None) == "seconds"
    assert Limits().closing_reason(restless[24:26], MAX_SECONDS.value - 0.1, None) is None
    assert Limits().closing_reason(restless, MAX_SECONDS.value, None) == "seconds"


def test_steps_of_seconds_close_the_window_sooner():
    slow = [5_000_000_000] * 3
    assert Limits().closing_reason(slow, SLOW_SECONDS.value, None) == "seconds"
    assert Limits().closing_reason(slow, SLOW_SECONDS.value - 0.1, None) is None
    assert Limits().closing_reason(slow[:2], SLOW_SECONDS.value, None) is None
    assert Limits(seconds=18).closing_reason(slow, SLOW_SECONDS.value, None) is None, "the user's limits come first"


@pytest.mark.parametrize("start_s", [0.0, 15.0, 40.0])
@pytest.mark.parametrize("step_s", [0.05, 0.3, 0.7, 1.0, 1.7, 2.0, 3.0, 4.0, 4.6, 4.9, 5.0, 6.0, 7.5, 10.0, 20.0, 30.0])
def test_a_verdict_takes_a_minute_or_twelve_steps(step_s, start_s, tmp_path, monkeypatch):
    """Whichever is longer, from the start of the command; `start_s` is the time until the first step ends, less this step."""
    now = 1_000_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: now)
    consumers = Consumers()
    consumer = consumers.at("keras.fit", None, None)
    monitor = quiet_monitor(tmp_path, consumers)
    start = now
    now += int(2 / 3 * start_s * 1e9)
    with pytest.raises(StopScript):
        while now - start < 600e9:
            monitor.boundary(consumer)
            now += int((step_s if consumer.count else step_s + start_s / 3) * 1e9)
    taken_s = (now - start) / 1e9 + AFTER_WINDOW_S.value
    shortest_s = start_s + max(7 * step_s, 2 * SHORT_SECONDS.value + 2.0) + AFTER_WINDOW_S.value
    assert taken_s <= max(VERDICT_SECONDS.value, VERDICT_STEPS.value * step_s, shortest_s) + 1e-6
    assert monitor.capture is not None
    window = monitor.capture.window
    assert window.plain_steps >= 3 and window.steps >= 1
    if 1 <= step_s <= 2 and start_s <= 15:
        assert window.plain_steps >= 5 and window.steps >= 3, "there is time for more than the least"
    if step_s <= MIN_SECONDS.value / MIN_STEPS.value:
        assert window.plain_steps >= MIN_STEPS.value <= window.steps, "fast steps take no time"


@pytest.mark.parametrize(
    ("step_s", "start_s", "writing_s", "is_early"),
    [
        (5.0, 5.0, 0.5, False),
        (5.0, 30.0, 0.5, True),
        (5.0, 10.0, 0.9, False),
        (5.0, 15.0, 4.0, True),
        (0.9, 60.0, 0.1, False),
        (20.0, 60.0, 1.0, False),
    ],
)
def test_without_time_for_another_profile_that_of_the_trial_is_kept(
    step_s, start_s, writing_s, is_early, tmp_path, monkeypatch
):
    now = 1_000_000_000_000
    monkeypatch.setattr("time.time_ns", lambda: now)

    def write():
        nonlocal now
        now += int(writing_s * 1e9)

    consumers = Consumers()
    consumer = consumers.at("keras.fit", None, None)
    monitor = quiet_monitor(tmp_path, consumers)
    profiler = Sessions(write)
    monitor.profiler = profiler  # type: ignore[assignment]
    now += int(start_s * 1e9)
    with pytest.raises(StopScript):
        while consumer.count < 1000:
            monitor.boundary(consumer)
            now += int(step_s * 1e9)
    assert monitor.capture is not None
    window = monitor.capture.window
    assert profiler.saved == (1 if is_early else 2)
    assert window.is_profile_early is is_early and window.closed_by == "seconds"
    assert window.plain_steps >= 3 and window.steps >= 1
    assert window.warmup_steps + window.plain_steps + (0 if is_early else window.steps) == consumer.count
    assert window.plain_start_ns < window.plain_end_ns == (now if is_early else window.start_ns)
    monitor.settle()
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 1


def test_without_time_slow_steps_are_measured_in_the_fewest_steps():
    over, enough = TimeLeft(-5.0, 4.0), TimeLeft(100.0, 4.0)
    slow = [4_000_000_000] * 3
    for left, is_enough in ((over, True), (enough, False)):
        assert Limits().is_settled(3, 8.0, left) is is_enough and not Limits().is_settled(2, 8.0, left)
        assert Limits().is_timed(slow, 8.0, left) is is_enough and not Limits().is_timed(slow[:2], 8.0, left)
        assert (Limits().closing_reason(slow[:1], 4.0, None, left) == "seconds") is is_enough
        assert has_drained(0, 0.1, left, writing_s=0.5) is is_enough
        assert not has_drained(0, 0.1, left, writing_s=3.0), "the buffers filled up meanwhile"
    assert Limits().closing_reason([], 4.0, None, over) is None


def test_without_time_fast_steps_are_measured_as_always():
    over = TimeLeft(-5.0, 0.01)
    assert not Limits().is_timed(STEADY, UNPROFILED_SECONDS.value - 0.1, over)
    assert Limits().closing_reason(STEADY, MIN_SECONDS.value - 0.1, None, over) is None
    assert not has_drained(10, 0.5, over) and not Limits().is_settled(10, 1.0, over)


def test_the_time_left_is_that_of_a_minute_or_of_twelve_steps():
    assert time_left(20.0, [2_000_000_000] * 3) == TimeLeft(60 - 20 - AFTER_WINDOW_S.value, 2.0)
    assert time_left(20.0, [10_000_000_000, 1, 10_000_000_000]) == TimeLeft(120 - 20 - AFTER_WINDOW_S.value, 10.0)
    assert time_left(20.0, []).has_step_before(10**6), "the first step says nothing"


def test_writing_the_profile_takes_its_share_of_the_time():
    step = [2_000_000_000]
    assert time_left(20.0, step, 1.0) == time_left(20.0, step)
    assert time_left(20.0, step, 10.0).seconds == 60 - 20 - AFTER_WINDOW_FACTOR.value * 10.0


def test_steps_are_timed_before_the_profiler_starts():
    limits = Limits()
    assert limits.is_timed(STEADY, UNPROFILED_SECONDS.value) and not limits.is_timed(
        STEADY, UNPROFILED_SECONDS.value - 0.1
    )
    restless = [1_000_000] * 25 + [50_000_000] * 25
    assert not limits.is_timed(restless, 4.9) and limits.is_timed(restless, 5.0)
    assert not limits.is_timed(STEADY[:2], 60.0) and not limits.is_timed(STEADY[:3], 9.0)
    assert limits.is_timed(STEADY[:3], 10.0), "steps of seconds do not need twenty of them"
    assert Limits(steps=10).is_timed(STEADY[:10], 0.1) and Limits(seconds=0.5).is_timed([], 0.5)


def test_both_stretches_hold_an_epoch_if_that_does_not_take_long():
    """A wait at the beginning of each epoch is in neither of them otherwise, and the steps between look steady."""
    limits = Limits()
    assert not limits.is_timed(STEADY, UNPROFILED_SECONDS.value, epoch_steps=51)
    assert limits.is_timed(STEADY, UNPROFILED_SECONDS.value, epoch_steps=50)
    assert limits.is_timed(STEADY, UNPROFILED_MAX_SECONDS.value, epoch_steps=51), "but not too long"
    assert Limits(seconds=2).is_timed(STEADY, 2.0, epoch_steps=51), "the user's limits come first"
    assert limits.closing_reason(STEADY, MIN_SECONDS.value, None, epoch_steps=51) is None
    assert limits.closing_reason(STEADY, MIN_SECONDS.value, None, epoch_steps=50) == "stable"
    assert limits.closing_reason(STEADY, RESTLESS_SECONDS.value, None, epoch_steps=51) == "seconds"


def test_the_users_limits_come_first():
    assert Limits(steps=50).closing_reason(STEADY, 0.5, None) == "steps"
    assert Limits(steps=51).closing_reason(STEADY, 15.0, None) is None
    assert Limits(seconds=3).closing_reason(STEADY, 2.9, None) is None
    assert Limits(seconds=3).closing_reason(STEADY, 3.0, None) == "seconds"
    assert Limits(steps=1000, seconds=3).closing_reason(STEADY, 3.0, None) == "seconds"


def test_the_profile_stays_small():
    assert Limits(max_events=50_000).closing_reason(STEADY, 0.5, 1000.0) == "events"
    assert Limits(max_events=60_000).closing_reason(STEADY, 0.5, 1000.0) is None
    assert Limits().closing_reason([], 0.5, 1e9) is None, "one step at least"


def test_slow_loops_drain_by_time():
    assert has_drained(10, 1.0) and not has_drained(10, 0.5) and not has_drained(1, 60.0) and has_drained(2, 5.0)


@given(st.lists(st.integers(1, 10**9), max_size=60))
def test_half_width_is_a_share(steps):
    width = half_width(steps)
    assert width >= 0 and (math.isinf(width) if len(steps) < 4 else math.isfinite(width))


@pytest.mark.parametrize("factor", [1, 7])
def test_half_width_does_not_depend_on_the_unit(factor):
    steps = [5, 7, 6, 5, 9, 4, 6, 6, 5, 7, 8, 5]
    assert half_width([s * factor for s in steps]) == pytest.approx(half_width(steps))


def test_a_loop_of_very_many_steps_keeps_its_last_ones():
    consumer = ConsumerSteps("c0", "for", None, None)
    for number in range(2 * MAX_STEPS + 10):
        consumer.begin(number * 10 + 1)
    consumer.end((2 * MAX_STEPS + 10) * 10 + 1)
    assert consumer.count == 2 * MAX_STEPS + 10 and MAX_STEPS <= len(consumer.starts) < 2 * MAX_STEPS
    assert consumer.durations(consumer.count - 5) == [10] * 5, "the window of a fast loop opens late"
    series = consumer.series()
    assert series.first_step + len(series.start_ns) == consumer.count
    assert not Limits().is_too_early(5, UNPROFILED_SECONDS.value) and Limits().is_too_early(10**6, 1.9)
    assert not Limits(steps=5).is_too_early(5, 0.0) and not Limits(seconds=1).is_too_early(5, 1.0)
