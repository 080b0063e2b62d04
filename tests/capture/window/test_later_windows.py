"""Windows after the run's own one: opened when asked for, closed by time whatever happens, and less important than the script."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.window.later_windows import LaterWindows
from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import FOLLOW_AFTER_S, LATER_LIMIT_S, LATER_SECONDS, LOOP_SECONDS
from tests.capture.window.monitors import Sessions, quiet_monitor

S = 1_000_000_000
START = 1_000_000 * S


class Run:
    """A training on a clock of its own."""

    def __init__(self, tmp_path, monkeypatch):
        self.now, self.folder = START, tmp_path / "1"
        monkeypatch.setattr("time.time_ns", lambda: self.now)
        self.profiler, self.consumers, self.written = Sessions(), Consumers(), []
        self.later = LaterWindows(
            self.consumers,
            lambda: self.profiler,
            lambda: None,
            lambda capture, problem: self.written.append((capture, problem)),
        )
        self.main = self.consumers.at("keras.fit", None, None)

    def step(self, consumer, seconds, leader=None):
        """One step of a consumer, and the boundary at its end."""
        consumer.begin(self.now)
        self.now += round(seconds * S)
        consumer.end(self.now)
        self.later.boundary(consumer, leader or self.main, self.now)

    def steps(self, number, seconds=0.1, consumer=None):
        for _ in range(number):
            self.step(consumer or self.main, seconds)


@pytest.fixture
def run(tmp_path, monkeypatch):
    return Run(tmp_path, monkeypatch)


def test_nothing_happens_unless_it_is_asked_for(run):
    run.steps(1000)
    assert run.profiler.started == 0 and run.written == []


def test_a_window_times_steps_first_and_then_profiles_them(run):
    run.steps(5)
    run.later.ask(run.folder)
    run.steps(21)
    assert run.profiler.started == 1 and not run.written
    run.steps(21)
    ((capture, problem),) = run.written
    assert problem == "" and capture.profile_bytes == 2500 and capture.consumer is run.main
    window = capture.window
    assert (window.warmup_steps, window.plain_steps, window.steps) == (6, 20, 20)
    assert window.end_ns - window.start_ns == LATER_SECONDS.value * S
    run.steps(100)
    assert run.profiler.started == 1, "one request is one window"


def test_samples_beside_the_profiler_are_known(run):
    run.later.ask(run.folder)
    assert not run.later.has_profiled_since(START)
    run.steps(30)
    assert run.later.has_profiled_since(run.now), "it runs"
    run.steps(30)
    assert run.later.has_profiled_since(START) and not run.later.has_profiled_since(run.now)


def test_a_session_of_the_script_has_precedence(run):
    run.later.ask(run.folder)
    run.steps(30)
    run.later.cancel()
    run.profiler.is_users_running = True
    run.steps(100)
    assert (run.profiler.started, run.profiler.saved, run.written) == (1, 0, [])
    run.profiler.is_users_running = False
    run.steps(50)
    assert run.profiler.saved == 1 and len(run.written) == 1, "the window comes later"


def test_evaluations_are_no_windows_and_do_not_prolong_one(run):
    evaluation = run.consumers.at("keras.evaluate", None, None)
    run.later.ask(run.folder)
    run.steps(100, consumer=evaluation)
    assert run.profiler.started == 0
    run.steps(25)
    assert run.profiler.is_running
    run.steps(100, consumer=evaluation)
    ((capture, _),) = run.written
    assert not run.profiler.is_running
    assert (capture.window.end_ns - capture.window.start_ns) / S < 2 * LATER_SECONDS.value + 1


def test_another_loop_takes_the_place_of_one_that_has_ended(run):
    second = run.consumers.at("keras.fit", None, "elsewhere")
    run.steps(10)
    run.later.ask(run.folder)
    run.steps(10, consumer=second)
    assert run.later.is_wanted
    run.now += round(FOLLOW_AFTER_S.value * S)
    run.steps(50, consumer=second)
    ((capture, _),) = run.written
    assert capture.consumer is second


def test_a_step_that_never_ends_does_not_keep_the_profiler_running(run):
    run.later.ask(run.folder)
    run.steps(25)
    assert run.profiler.is_running
    while run.profiler.is_running:
        run.now += S // 5
        run.later.poll(run.now, None)
    assert run.now - START < LATER_LIMIT_S.value * S + S
    assert len(run.written) == 1


@pytest.mark.parametrize(("steps", "is_profiled"), [(21, True), (5, False)])
def test_a_script_that_stops_making_steps_is_not_profiled_for_long(steps, is_profiled, run):
    run.later.ask(run.folder)
    run.steps(steps)
    assert run.profiler.is_running is is_profiled
    for _ in range(150):
        run.now += S // 5
        run.later.poll(run.now, None)
        assert not run.profiler.is_running or run.now - START < LATER_LIMIT_S.value * S + S
    assert not run.profiler.is_running
    assert run.profiler.saved == is_profiled and run.later.is_wanted is not is_profiled, (
        "without a profile it comes later"
    )


def test_steps_of_seconds_are_measured_too(run):
    run.later.ask(run.folder)
    run.steps(4, seconds=3.0)
    ((capture, _),) = run.written
    assert (capture.window.plain_steps, capture.window.steps) == (1, 1)


def test_a_loop_inside_a_function_is_profiled_by_time(run):
    run.main.is_loop = True
    run.later.ask(run.folder)
    run.later.poll(run.now, run.main)
    assert run.profiler.is_running
    run.now += round((LOOP_SECONDS.value + 1) * S)
    run.later.poll(run.now, run.main)
    ((capture, problem),) = run.written
    assert capture.window.steps == 0 and problem == ""


def test_a_profiler_that_refuses_is_a_sentence(run):
    def refuse(folder):
        raise RuntimeError("Another profiling session is active.")

    run.profiler.start = refuse
    run.later.ask(run.folder)
    run.steps(60)
    ((capture, problem),) = run.written
    assert capture.profile_bytes == 0 and problem.startswith("The process was being profiled already")


def test_what_fails_leaves_no_profiler_running(run):
    def broken(capture, problem):
        raise ValueError("a bug")

    run.later._write = broken
    run.later.ask(run.folder)
    with pytest.raises(ValueError, match="a bug"):
        run.steps(60)
    assert not run.profiler.is_running and not run.later._is_profiling


def test_the_monitor_hands_over_after_its_own_window(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch)
    warnings = []
    limits = Limits(warmup=2, steps=5)
    monitor = quiet_monitor(tmp_path / "run", run.consumers, limits, is_to_end=True, warn=warnings.append)
    monitor.profiler, monitor.later = run.profiler, run.later

    def train(number):
        for _ in range(number):
            monitor.boundary(run.main)
            run.now += S // 10

    train(30)
    assert run.profiler.saved == 1 and monitor.capture is not None
    own = monitor.capture
    train(500)
    assert run.profiler.started == 1
    run.later.ask(run.folder)
    train(60)
    assert run.profiler.saved == 2 and len(run.written) == 1
    assert monitor.capture is own, "the report at the end is on the run's own window"
    run.later.ask(run.folder.with_name("2"))
    train(25)
    monitor.script_profiles()
    assert not run.profiler.is_running and run.profiler.saved == 2
    monitor.script_ended("finished")
    train(100)
    assert run.profiler.saved == 2
    assert len(warnings) == 1 and "uses TensorFlow's profiler itself" in warnings[0]
