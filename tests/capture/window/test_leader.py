"""Which of several loops the window follows, on a simulated clock."""

from __future__ import annotations

import _thread
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.stop_script import StopScript
from advisor.model.calls import Site
from tests.capture.window.monitors import quiet_monitor

MS = 1_000_000


class Clock:
    """A monitor, and the loops of a script that takes elements."""

    def __init__(self, folder: Path) -> None:
        self.now = 1_000_000_000_000
        self.consumers = Consumers()
        self.monitor = quiet_monitor(folder, self.consumers, is_profiling=False)

    def consumer(self, line: int) -> ConsumerSteps:
        return self.consumers.at("for", Site("train.py", line, 1, line, 9), None)

    def take(self, consumer: ConsumerSteps, milliseconds: float = 1.0) -> None:
        """Take an element, and work on it for so long."""
        self.monitor.boundary(consumer)
        self.now += int(milliseconds * MS)

    def exhaust(self, consumer: ConsumerSteps) -> None:
        """Ask for an element when there are no more."""
        self.monitor.boundary(consumer)
        consumer.forget()


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(tmp_path)
    monkeypatch.setattr("time.time_ns", lambda: clock.now)
    return clock


class Iterator:
    """What can be referred to weakly."""


def gone() -> weakref.ref[Iterator]:
    """A reference to an iterator that was destroyed."""
    reference = weakref.ref(Iterator())
    assert reference() is None
    return reference


def measured(clock: Clock, run: Callable[[], None]) -> ConsumerSteps | None:
    """The loop of the window; None if there was no window in ten minutes."""
    start = clock.now
    with pytest.raises(StopScript):
        while clock.now - start < 600_000 * MS:
            run()
    assert clock.monitor.capture is not None
    return clock.monitor.capture.consumer


def test_a_look_at_the_first_element_is_no_loop(clock: Clock) -> None:
    """`next(iter(dataset))`, whose iterator is destroyed at once."""
    look, training = clock.consumer(5), clock.consumer(9)
    clock.take(look)
    look.iterator = gone()
    assert measured(clock, lambda: clock.take(training, 20)) is training


def test_a_look_gives_way_at_once(clock: Clock) -> None:
    look, training = clock.consumer(5), clock.consumer(9)
    clock.take(look)
    look.iterator = gone()
    for _ in range(5):
        clock.take(training, 2_000)
    assert clock.monitor.leader is training


def test_a_new_iterator_for_every_step_is_measured(clock: Clock) -> None:
    """`batch = next(iter(dataset))` in a loop."""
    training = clock.consumer(9)
    training.iterator = gone()
    assert measured(clock, lambda: clock.take(training, 20)) is training


@pytest.mark.tensorflow  # is asked for the model of the iterator
def test_a_look_whose_iterator_is_kept_is_no_loop(clock: Clock) -> None:
    look, training, kept = clock.consumer(5), clock.consumer(9), Iterator()
    clock.take(look)
    look.iterator = weakref.ref(kept)
    assert measured(clock, lambda: clock.take(training, 20)) is training


def test_a_loop_inside_a_step_is_part_of_it(clock: Clock) -> None:
    outer, inner = clock.consumer(5), clock.consumer(6)

    def step() -> None:
        clock.take(outer)
        for _ in range(30):
            clock.take(inner)
        clock.exhaust(inner)

    assert measured(clock, step) is outer


def test_a_pipelines_own_thread_never_leads(clock: Clock) -> None:
    """A generator that reads another dataset, in a thread of TensorFlow, while the training is between two of its steps."""
    training, feeding = clock.consumer(5), clock.consumer(6)
    clock.take(training)
    clock.exhaust(training)

    def feed() -> None:
        for _ in range(30):
            clock.take(feeding, 20)

    in_foreign_thread(feed)
    assert feeding.total_ns > training.total_ns and clock.monitor.leader is training
    feed()  # the same in a thread of Python's
    assert clock.monitor.leader is feeding


def in_foreign_thread(run: Callable[[], None]) -> None:
    """Run it in a thread that Python's `threading` did not start."""
    done = threading.Event()

    def runs() -> None:
        run()
        done.set()

    _thread.start_new_thread(runs, ())
    assert done.wait(60)
