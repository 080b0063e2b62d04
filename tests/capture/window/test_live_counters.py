"""The counters of a running script, on consumers whose steps are made here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import MAX_STEPS, Consumers
from advisor.capture.window import live_counters
from advisor.capture.window.live_counters import LiveCounters
from advisor.model.calls import Site

MS = 1_000_000


@pytest.fixture
def consumers():
    return Consumers()


def consumer_at(consumers, line=7):
    return consumers.at("for", Site("/home/me/train.py", line, 0, line, 10), None)


def steps(consumer, number, length_ms, wait_ms=0.0, start=1_000_000_000):
    for place in range(number):
        consumer.begin(start + place * 100 * MS)
        consumer.fetch_ns = round(wait_ms * MS)
        consumer.end(start + place * 100 * MS + round(length_ms * MS))


def counters(consumers, sent=None, leader=lambda: None, has_profiled_since=lambda time_ns: False):
    return LiveCounters(
        consumers, leader, has_profiled_since, lambda sample: None if sent is None else sent.append(sample), print, 0.05
    )


def test_each_step_is_in_one_sample(consumers):
    consumer = consumer_at(consumers)
    live = counters(consumers, leader=lambda: consumer)
    steps(consumer, 10, 20.0, 5.0)
    (first,) = live.sample().consumers
    assert (first.where, first.steps, first.new_steps, first.is_main) == ("train.py:7", 10, 10, True)
    assert (first.step_ns, first.wait_ns, first.wait_share) == (20 * MS, 5 * MS, 0.25)
    assert live.sample().consumers == ()
    steps(consumer, 5, 40.0)
    (second,) = live.sample().consumers
    assert (second.steps, second.new_steps, second.step_ns) == (15, 5, 40 * MS)


def test_the_time_between_two_epochs_is_a_pause(consumers):
    consumer = consumer_at(consumers)
    live = counters(consumers)
    for epoch in range(3):
        for step in range(4):
            begin = 1_000_000_000 + epoch * 500 * MS + step * 10 * MS
            consumer.begin(begin)
            consumer.end(begin + 10 * MS - 1000)
        if epoch == 0:
            (first,) = live.sample().consumers
    (second,) = live.sample().consumers
    assert (first.pauses, first.pause_ns) == (0, 0)
    assert (second.pauses, second.pause_ns) == (2, 2 * (460 * MS + 1000))


def test_a_wait_that_python_cannot_see_is_unknown_and_not_zero(consumers):
    consumer = consumers.at("keras.fit", Site("/home/me/train.py", 7, 0, 7, 10), None)
    steps(consumer, 10, 20.0)
    (seen,) = counters(consumers).sample().consumers
    assert (seen.step_ns, seen.wait_ns, seen.wait_share) == (20 * MS, None, None)


def models(monkeypatch, consumer, delivered, gaps_ms):
    """Let tf.data's model of the consumer's iterator say this."""
    node = SimpleNamespace(name="Root", inputs=[], num_elements=delivered, parameters=[])
    proto = SimpleNamespace(output=1, nodes={1: node}, gap_times=[round(gap * 1000) for gap in gaps_ms])
    monkeypatch.setattr(live_counters, "model_nodes", lambda consumers: {consumer.id: (1, proto)})


def keras_steps(consumer, *lengths_ms):
    """Make steps one after the other, and begin the next one."""
    now = consumer.open_since_ns or 1_000_000_000
    if not consumer.open_since_ns:
        consumer.begin(now)
    for length_ms in lengths_ms:
        now += length_ms * MS
        consumer.begin(now)


def test_the_wait_of_keras_comes_from_the_gaps(consumers, monkeypatch):
    consumer = consumers.at("keras.fit", Site("/home/me/train.py", 7, 0, 7, 10), None)
    live = counters(consumers)
    consumer.reads("call")
    keras_steps(consumer, 900)
    models(monkeypatch, consumer, 1, [])
    (first,) = live.sample().consumers
    assert (first.new_steps, first.wait_ns) == (1, None), "it traces, and its gap has not ended"
    keras_steps(consumer, *[20] * 8)
    models(monkeypatch, consumer, 9, [100, *[7] * 7])
    (second,) = live.sample().consumers
    assert (second.new_steps, second.step_ns, second.wait_ns) == (8, 20 * MS, 13 * MS)


def test_the_first_step_of_each_fit_is_left_out(consumers, monkeypatch):
    consumer = consumers.at("keras.fit", Site("/home/me/train.py", 7, 0, 7, 10), None)
    for _ in range(2):
        consumer.call_firsts.append(consumer.count)
        consumer.reads("call")
        keras_steps(consumer, 900, *[20] * 9)
        consumer.forget()
    models(monkeypatch, consumer, 10, [12] * 9)
    (seen,) = counters(consumers).sample().consumers
    assert (seen.new_steps, seen.wait_ns) == (20, 8 * MS), "what it traces before its first request is no wait"


def test_a_loop_inside_a_tf_function_has_steps_and_a_wait(consumers, monkeypatch):
    consumer = consumers.at("tf.function", Site("/home/me/train.py", 7, 0, 7, 10), None)
    consumer.is_traced = consumer.is_loop = True
    consumer.reads("call")
    now = [1_000_000_000]
    monkeypatch.setattr(live_counters.time, "time_ns", lambda: now[0])
    live = LiveCounters(consumers, lambda: None, lambda time_ns: False, print, print, 0.05, lambda consumer: 1)
    models(monkeypatch, consumer, 10, [15] * 9)
    (first,) = live.sample().consumers
    now[0] += 1000 * MS
    models(monkeypatch, consumer, 60, [15] * 59)
    (second,) = live.sample().consumers
    assert (first.steps, first.new_steps, first.step_ns, first.wait_ns) == (10, 10, None, None)
    assert (second.steps, second.new_steps) == (60, 50)
    assert (second.step_ns, second.wait_ns) == (20 * MS, 5 * MS)


def test_steps_that_are_no_longer_kept_stay_counted(consumers):
    consumer = consumer_at(consumers)
    live = counters(consumers)
    steps(consumer, 10, 1.0)
    live.sample()
    steps(consumer, 2 * MAX_STEPS + 100, 1.0)
    (seen,) = live.sample().consumers
    assert seen.steps == 2 * MAX_STEPS + 110
    assert seen.step_ns == MS


def test_a_step_that_is_just_being_written_waits_for_the_next_sample(consumers):
    """The training's thread appends to one column after the other, and may be interrupted in between."""
    consumer = consumer_at(consumers)
    steps(consumer, 3, 10.0)
    consumer.starts.append(5)
    live = counters(consumers)
    (seen,) = live.sample().consumers
    assert (seen.steps, seen.step_ns) == (3, 10 * MS)


def test_samples_beside_the_profiler_say_so(consumers):
    asked = []

    def has_profiled_since(time_ns):
        asked.append(time_ns)
        return len(asked) == 2

    live = counters(consumers, has_profiled_since=has_profiled_since)
    first, second, third = (live.sample() for _ in range(3))
    assert [sample.is_profiled for sample in (first, second, third)] == [False, True, False]
    assert asked[1:] == [first.time_ns, second.time_ns]  # it is asked about the time that the sample covers


def test_the_thread_sends_samples_until_it_is_stopped(consumers):
    consumer, sent = consumer_at(consumers), []
    live = counters(consumers, sent)
    live.start()
    steps(consumer, 10, 1.0)
    live._thread.join(0.3)
    steps(consumer, 4, 1.0)
    live.stop()
    assert len(sent) >= 3
    assert sum(consumer.new_steps for sample in sent for consumer in sample.consumers) == 14
    assert all(sample.own_ns < sample.elapsed_ns for sample in sent)


def test_a_reader_that_has_gone_ends_the_thread(consumers):
    def gone(sample):
        raise BrokenPipeError

    live = LiveCounters(consumers, lambda: None, lambda time_ns: False, gone, print, 0.01)
    live.start()
    live._thread.join(5)
    assert not live._thread.is_alive()
    live.stop()  # and says nothing


def test_sampling_that_fails_says_so_and_ends(consumers):
    def broken():
        raise RuntimeError("no leader")

    warnings = []
    live = LiveCounters(consumers, broken, lambda time_ns: False, lambda sample: None, warnings.append, 0.01)
    live.start()
    live._thread.join(5)
    assert warnings == ["The steps were no longer watched (RuntimeError: no leader)."]
    live.stop()
    assert len(warnings) == 2
