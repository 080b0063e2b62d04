"""Steps without concurrent input, after the window: when they are timed, which of them, and what the script gets meanwhile."""

from __future__ import annotations

import statistics
import time
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.stop_script import StopScript
from advisor.capture.window.idle_steps import IdleSteps
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import ENDING_STEPS, IDLE_SETTLE_S, IDLE_SILENCE_S, IDLE_STEPS
from advisor.model.recording import Loop
from advisor.model.window_readings import BufferLevels
from tests.capture.window.monitors import Sessions, quiet_monitor

MS = 1_000_000
SETTLE_NS = int(IDLE_SETTLE_S.value * 1e9)


def consumer_that_waits(kind="for", wait_ms=80, step_ms=100, steps=20, library=None):
    consumer = Consumers().at(kind, None, library)
    for number in range(steps):
        consumer.begin((1 + number) * step_ms * MS)
        consumer.fetch_ns = wait_ms * MS
        consumer.end((2 + number) * step_ms * MS)
    return consumer


def wanted():
    idle = IdleSteps()
    idle.is_wanted = True
    return idle


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"kind": "next"}, True),
        ({"wait_ms": 2}, False),  # its own time is that without input already
        ({"kind": "tf.function"}, False),
        ({"kind": "as_numpy_iterator"}, False),  # the script may change an array, which it would get again
        ({"library": "tensorflow_datasets"}, False),
        ({"step_ms": 400, "wait_ms": 300}, False),  # too few fit
        ({"steps": 0}, False),
    ],
)
def test_only_loops_that_wait_for_tensors_get_an_element_again(changes, expected):
    consumer = consumer_that_waits(**changes)
    idle = wanted()
    assert idle.begin(consumer, (), 0) is expected
    assert (idle.is_running, consumer.repeated is not None) == (expected, expected)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((BufferLevels("c0", "Prefetch", True, elements=(0, 1, 1, 1)),), True),
        ((BufferLevels("c0", "Prefetch", True, elements=(1,) * 11 + (0,)),), False),
        ((BufferLevels("c0", "PrefetchV2", True, elements=(2, 2)),), False),
        ((BufferLevels("c0", "MapAndBatch", True, elements=(1, 1)),), True),  # it may be half of a batch
        ((), True),
    ],
)
def test_a_fit_may_wait_unless_its_buffer_says_otherwise(levels, expected):
    consumer, idle = consumer_that_waits(kind="keras.fit"), wanted()
    assert idle.may_begin(consumer, levels) is expected
    assert idle.begin(consumer, levels, 0) is expected and idle.is_running is expected


def test_a_step_that_a_fit_makes_itself_ends_it():
    """It is not one without input. The train function was to be called instead."""
    consumer, idle = consumer_that_waits(kind="keras.fit"), wanted()
    idle.begin(consumer, (BufferLevels("c0", "Prefetch", True, elements=(0,)),), 0)
    assert idle.boundary(consumer, 2 * SETTLE_NS) and not idle.is_running
    assert idle.durations_ns == [] and consumer.repeated is None


def test_nothing_is_repeated_unless_it_is_wanted_and_no_second_time():
    consumer = consumer_that_waits()
    assert not IdleSteps().begin(consumer, (), 0) and consumer.repeated is None
    idle = wanted()
    assert idle.begin(consumer, (), 0)
    idle.end()
    assert not idle.begin(consumer, (), 0) and consumer.repeated is None


def test_steps_count_once_the_buffers_had_time_to_fill():
    consumer, idle = consumer_that_waits(), wanted()
    idle.begin(consumer, (), 1000)
    now, took_ms = 1000, 0
    while not idle.boundary(consumer, now):
        took_ms += 1
        now += (40 if now - 1000 < SETTLE_NS else 10) * MS
    assert idle.durations_ns == [10 * MS] * IDLE_STEPS.value
    assert not idle.is_running and consumer.repeated is None


def test_long_steps_end_after_two_seconds():
    consumer, idle = consumer_that_waits(), wanted()
    idle.begin(consumer, (), 0)
    ends = [idle.boundary(consumer, number * 400 * MS) for number in range(1, 7)]
    assert ends == [False] * 4 + [True, False]
    assert idle.durations_ns == [400 * MS] * 3  # those that began after 0.8, 1.2 and 1.6 s


def test_other_loops_meanwhile_do_not_count():
    consumer, idle = consumer_that_waits(), wanted()
    idle.begin(consumer, (), 0)
    silence_ns = int(IDLE_SILENCE_S.value * 1e9)
    assert not idle.boundary(consumer, 100 * MS)
    assert not idle.boundary(consumer_that_waits(), 100 * MS + silence_ns)
    assert idle.is_silent(100 * MS + silence_ns) and not idle.is_silent(99 * MS + silence_ns)
    assert idle.durations_ns == [] and not wanted().is_silent(silence_ns)


def test_the_end_of_the_data_matters_until_there_is_an_element():
    consumer, idle = consumer_that_waits(), wanted()
    assert not idle.is_waiting_for_last(consumer)
    idle.begin(consumer, (), 0)
    assert idle.is_waiting_for_last(consumer) and not idle.is_waiting_for_last(consumer_that_waits())
    consumer.repeated.append("element")
    assert not idle.is_waiting_for_last(consumer)


LOOP = """
import time
import tensorflow as tf
def slow(x):
    y = tf.cast(x, tf.float32) * tf.ones([300, 300])
    for _ in range(20):
        y = tf.linalg.matmul(y, y) / 1e3
    return x + tf.cast(tf.reduce_sum(y) * 0, tf.int64)
ds = tf.data.Dataset.range(1_000_000).map(slow).batch(8).prefetch(2)
for x in ds:
    with open("seen.txt", "a") as file:
        file.write(f"{int(x[0])}\\n")
    time.sleep(0.002)
"""


@pytest.mark.tensorflow
def test_a_real_loop_gets_the_same_batch_again_after_its_window(watch, tmp_path):
    run = watch(LOOP, reads_alone=True, seconds=1.0)
    recording = run.recording
    assert len(recording.idle_step_ns) == IDLE_STEPS.value and recording.script_exit.kind == "stopped"
    (series,) = recording.steps
    durations = [end - start for start, end in zip(series.start_ns, series.end_ns, strict=True)]
    assert statistics.median(recording.idle_step_ns) < 0.7 * statistics.median(durations)
    assert recording.read_alone is None


@pytest.mark.tensorflow
def test_a_run_that_is_not_asked_for_it_stops_at_once(watch):
    assert watch(LOOP, seconds=1.0).recording.idle_step_ns == ()


SHORT = """
import time
import tensorflow as tf
def slow(x):
    time.sleep(0.01)
    return x
ds = tf.data.Dataset.range(EPOCH).map(lambda x: tf.numpy_function(slow, [x], tf.int64)).prefetch(2)
seen = []
for epoch in range(4):
    for x in ds:
        seen.append(int(x))
print(len(seen), len(set(seen)))
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_loop_that_ends_before_its_window_repeats_an_element_and_goes_on(watch):
    run = watch(SHORT.replace("EPOCH", "50"), reads_alone=True)
    recording = run.recording
    assert len(recording.idle_step_ns) == IDLE_STEPS.value and recording.script_exit.kind == "finished"
    assert recording.window.closed_by == "script ended"
    assert statistics.median(recording.idle_step_ns) < 5 * MS
    (series,) = recording.steps
    assert len(series.start_ns) == 4 * 50 and max(series.end_ns) - min(series.start_ns) < 60e9
    seen, different = map(int, run.out.split())
    assert different == 50 and seen > 4 * 50 + IDLE_STEPS.value


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_script_that_fails_because_of_them_was_stopped(watch):
    run = watch(SHORT.replace("EPOCH", "50") + "assert len(seen) == 200\n", reads_alone=True)
    assert run.recording.script_exit.kind == "stopped" and len(run.recording.idle_step_ns) == IDLE_STEPS.value
    assert not any("failed" in warning for warning in run.recording.warnings)


@pytest.mark.parametrize(
    ("state", "expected"), [("idle", False), ("trial", False), ("pause", True), ("unprofiled", True), ("open", True)]
)
@pytest.mark.parametrize("missing", [0, ENDING_STEPS.value, ENDING_STEPS.value + 1])
def test_the_last_steps_of_the_last_pass_are_the_ones(state, expected, missing, tmp_path):
    consumers = Consumers()
    monitor = quiet_monitor(tmp_path, consumers)
    consumer = consumers.at("for", None, None)
    consumer.loops = (Loop(2),)
    for epoch in range(2):
        consumer.reads("d1")
        for number in range(20 - missing * epoch):
            consumer.begin((100 * epoch + number + 1) * 100 * MS)
            consumer.fetch_ns = 80 * MS
            consumer.end((100 * epoch + number + 2) * 100 * MS)
    monitor.leader, monitor._state, monitor.capture = consumer, state, SimpleNamespace(consumer=consumer)
    assert not monitor._is_ending(consumer)  # not wanted
    monitor.idle_steps.is_wanted = True
    assert not monitor._is_ending(consumer)  # the script may leave other results
    monitor.idle_steps.may_go_on = True
    assert monitor._is_ending(consumer) is (expected and missing <= ENDING_STEPS.value)
    monitor.capture = None
    assert monitor._is_ending(consumer) is (state == "open" and missing <= ENDING_STEPS.value)


@pytest.mark.parametrize("is_leader", [True, False])
def test_only_the_measured_loop_goes_on(is_leader, tmp_path, monkeypatch):
    """Another loop, such as a validation, may be at a boundary when the script is to be stopped."""
    consumers = Consumers()
    measured, other = consumer_that_waits(), consumer_that_waits()

    def on_stuck(why):
        raise AssertionError(why)

    monitor = Monitor(
        tmp_path,
        Limits(),
        consumers,
        is_to_end=False,
        is_profiling=True,
        report=lambda *args: None,
        warn=lambda text: None,
        on_measured=lambda: None,
        on_stuck=on_stuck,
    )
    monitor.idle_steps.is_wanted, monitor.leader = True, measured
    monkeypatch.setattr(monitor, "_act", lambda consumer, now: True)
    consumer = measured if is_leader else other
    if is_leader:
        monitor.boundary(consumer)
        assert monitor.idle_steps.is_running and not consumer.open_since_ns
        with pytest.raises(StopScript):
            monitor.data_ended(consumer)  # there is no element to give again
    else:
        with pytest.raises(StopScript):
            monitor.boundary(consumer)
    assert not monitor.idle_steps.is_running


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize(
    "after",
    [
        "break",
        *(
            pytest.param(rest, marks=pytest.mark.slow)
            for rest in ("raise ValueError(len(seen))", "while True: time.sleep(0.1)")
        ),
    ],
)
def test_a_loop_that_notices_is_stopped_all_the_same(after, watch):
    """It ends, fails or goes no further because of a batch that it has seen before."""
    check = f"seen = set()\nfor x in ds:\n    if int(x[0]) in seen:\n        {after}\n    seen.add(int(x[0]))"
    text = LOOP.replace("for x in ds:", check) + "\nwhile True: time.sleep(0.1)\n"
    run = watch(text, reads_alone=True, seconds=1.0)
    assert run.recording.script_exit.kind == "stopped" and run.recording.idle_step_ns == ()
    assert not any("failed" in warning for warning in run.recording.warnings)


@pytest.mark.parametrize(("profiled", "expected"), [(25, 40), (60, 60)])
def test_a_short_profile_of_the_last_steps_does_not_replace_the_trial(profiled, expected, tmp_path):
    """They get what is left in a shuffle buffer, so that they do not wait."""
    consumers = Consumers()
    monitor = quiet_monitor(tmp_path, consumers)
    monitor.profiler = Sessions()
    monitor.leader = consumer = consumers.at("for", None, None)

    def make(steps):
        for _ in range(steps):
            consumer.begin(time.time_ns())
            consumer.end(time.time_ns() + MS)

    make(2)
    monitor._open(consumer, "trial")
    make(40)
    monitor._close("trial")
    monitor._open(consumer, "unprofiled")
    make(100)
    monitor._measurement.end_unprofiled()
    monitor._measurement.start_profiler()
    monitor._state = "open"
    make(profiled)
    monitor._end("script ended")
    window = monitor.capture.window
    assert (window.steps, window.plain_steps, window.closed_by) == (expected, 100, "script ended")
    assert not monitor.profiler.is_running
