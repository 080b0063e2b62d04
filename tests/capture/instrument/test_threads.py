"""What one thread does while it replays, or is inside a long call, leaves the other threads' datasets alone."""

from __future__ import annotations

import threading
import time

import pytest

from advisor.capture.instrument import replay_log
from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import Consumers
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.function_steps import CONSUMER
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import ReplayLog, Seeds
from advisor.capture.window.process_memory import ProcessMemory
from advisor.host.calibration.window import BLOCKED_S
from tests.capture.window.monitors import quiet_monitor


def in_thread(function):
    """The function's result, from a thread that has ended."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join(10)
    return results[0]


def make(size):
    return ("made", size)


@pytest.fixture
def recorder():
    return Recorder(SiteFinder(), lambda text: None)


def test_a_replay_replaces_only_the_calls_of_its_thread(recorder):
    wrapped = recorder.wrap(make, "batch")
    recorder.replacing = lambda original, method, args, kwargs, is_constructor: "replaced"
    assert wrapped(3) == "replaced"
    assert in_thread(lambda: wrapped(3)) == ("made", 3)


def test_a_pause_of_one_thread_does_not_stop_the_recording_of_another(recorder):
    begun = []
    recorder._prepare = lambda method, *rest: begun.append((method, threading.get_ident()))
    wrapped = recorder.wrap(make, "batch")
    with recorder.paused():
        wrapped(1)
        in_thread(lambda: wrapped(2))
    assert len(begun) == 1 and begun[0][1] != threading.get_ident()
    wrapped(3)
    assert len(begun) == 2


def test_seeds_are_those_of_the_thread_that_asked(monkeypatch):
    draws, others = iter(["mine", "other"]), []

    class Interrupted(ReplayLog):
        """Another thread begins a call as soon as the seeds of the first one were noted."""

        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_last" and value.generator_state == "mine":
                others.append(in_thread(lambda: self.begin("other", "map", None)))

    monkeypatch.setattr(replay_log, "current_seeds", lambda: Seeds(1, next(draws)))
    calls = Interrupted()
    assert calls.begin("call", "map", None).generator_state == "mine"
    assert others[0].generator_state == "other"


def test_threads_that_read_at_the_same_place_are_consumers_of_their_own():
    consumers = Consumers()
    mine = consumers.at("for", None, None)
    assert consumers.at("for", None, None) is mine
    first = in_thread(lambda: consumers.at("for", None, None))
    assert first is not mine and first.id != mine.id
    assert in_thread(lambda: consumers.at("for", None, None)) is first, "a thread per epoch is one consumer"
    assert consumers.all() == [mine, first]


def test_consumers_of_many_threads_have_ids_of_their_own():
    consumers = Consumers()
    barrier = threading.Barrier(8)
    all_steps = []

    def read(number):
        barrier.wait()
        for turn in range(50):
            all_steps.append(consumers.at(f"kind {turn}", None, None))
        barrier.wait()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (
        len(all_steps) == len({id(consumer) for consumer in all_steps}) == len({consumer.id for consumer in all_steps})
    )


class Session:
    """Where the profiler would be: notes when its session begins."""

    is_users_running = False

    def __init__(self):
        self.started = threading.Event()
        self.memory = ProcessMemory()

    def start(self, folder):
        folder.mkdir(parents=True)
        self.started.set()

    def stop(self):
        pass


EXECUTOR = """
def call(function):
    entered.set()
    while not leaving:
        sleep(0.01)
"""
"""A long call; it stands in a file of that name, as TensorFlow's executor does."""


def test_a_call_that_ends_in_one_thread_does_not_hide_the_long_call_of_another(tmp_path):
    consumers, session = Consumers(), Session()
    monitor = quiet_monitor(tmp_path, consumers, is_to_end=True)
    monitor.profiler = session
    entered, leaving = threading.Event(), []
    names = {"entered": entered, "leaving": leaving, "sleep": time.sleep}
    exec(compile(EXECUTOR, "execute.py", "exec"), names)

    consumption = Consumption(SiteFinder(), consumers, monitor, pytest.fail)
    long_call = consumption._steps.function_hook(names["call"])
    short_call = consumption._steps.function_hook(lambda function: None)

    class Function:
        """A tf.function whose calls are the steps of a consumer."""

    loop, other = Function(), Function()
    loop.__dict__[CONSUMER] = consumers.at("tf.function", None, None)
    other.__dict__[CONSUMER] = consumers.at("next", None, None)
    thread = threading.Thread(target=lambda: long_call(loop))
    thread.start()
    try:
        assert entered.wait(5)
        short_call(other)  # begins and ends in this thread while the other one is inside TensorFlow
        _poll_until_seen(monitor, session)
        assert loop.__dict__[CONSUMER].is_loop and not other.__dict__[CONSUMER].is_loop
    finally:
        leaving.append(True)
        thread.join()
        monitor.script_ended("finished")


def _poll_until_seen(monitor, session):
    """As the watchdog does: the thread must be seen inside the executor for `BLOCKED_S`; the clock is ours."""
    now = time.time_ns()
    for attempt in range(200):
        monitor.poll(now + int(attempt * BLOCKED_S.value * 1e9))
        if session.started.is_set():
            return
        time.sleep(0.005)
    pytest.fail("the long call was not seen")


@pytest.mark.tensorflow
def test_a_thread_that_builds_a_dataset_during_a_replay():
    import tensorflow as tf

    from advisor.model.edits import InsertAfter
    from tests.recorded import install

    built = []

    def build():
        dataset = tf.data.Dataset.range(6).batch(4)
        return dataset, [row.tolist() for row in dataset.as_numpy_iterator()]

    is_replaying = False

    @tf.autograph.experimental.do_not_convert
    def expand(x):
        if is_replaying:
            built.append(in_thread(build))
        return tf.data.Dataset.range(4).map(lambda y: x * 10 + y)

    with install() as recorded:
        dataset = tf.data.Dataset.range(2).interleave(expand, cycle_length=1)
        inner = recorded.call("map")
        is_replaying = True
        again = recorded.replay(dataset, InsertAfter(inner.id, "batch", (("", 2),)))
        assert [row.tolist() for row in again.as_numpy_iterator()] == [[0, 1], [2, 3], [10, 11], [12, 13]]
    other, rows = built[0]
    assert rows == [[0, 1, 2, 3], [4, 5]], "the edit is none of that thread's"
    assert call_id_of(other) not in (inner.id, call_id_of(dataset))
    assert recorded.recorder.call(call_id_of(other)).method == "batch", "it was recorded as ever"


@pytest.mark.tensorflow
def test_a_thread_that_builds_a_dataset_while_another_is_made_again():
    import tensorflow as tf

    from advisor.replay.rebuild import rebuild

    built = []

    @tf.autograph.experimental.do_not_convert
    def double(x):
        built.append(in_thread(lambda: tf.data.Dataset.range(6).batch(4)))
        return x * 2

    dataset = tf.data.Dataset.range(3).map(double).batch(2)
    rebuilt = rebuild(dataset, None, lambda call_id: None, pytest.fail)
    assert [call.method for call in rebuilt.recorder.calls()] == ["range", "map", "batch"]
    assert len(built) == 2 and call_id_of(built[1]) is None
