"""Python functions are sampled before the window, so that the measured steps do not pay for it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.stop_script import StopScript
from advisor.capture.window.pause_samples import PauseSamples
from advisor.capture.window.run_window import RunWindow
from advisor.host.calibration.window import PAUSE_SAMPLES, PAUSE_SAMPLING_S
from advisor.model.recording import PythonSamples
from tests.capture.window.monitors import Sessions, quiet_monitor

STEP_S = 0.02


class Sampling:
    """Stands in for `PythonSampler`: sees so many samples per second of `time.time_ns`."""

    def __init__(self, per_s: float) -> None:
        self._per_s, self._began_ns, self._limit_s = per_s, 0, 0.0
        self._end_ns: int | None = None

    def start(self, may_switch_faster: bool, limit_s: float = float("inf")) -> None:
        self._began_ns, self._limit_s = time.time_ns(), limit_s

    @property
    def _run_s(self) -> float:
        return ((self._end_ns or time.time_ns()) - self._began_ns) / 1e9

    @property
    def has_reached_limit(self) -> bool:
        return self._run_s >= self._limit_s

    @property
    def samples(self) -> int:
        return int(min(self._run_s, self._limit_s) * self._per_s)

    def stop(self) -> PythonSamples:
        self._end_ns = time.time_ns()
        return PythonSamples(self._end_ns - self._began_ns, max(1, self.samples))


class Run:
    """A loop of short steps on a clock of its own, with what was sampled in it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, per_s: float | None) -> None:
        self.now = self.start = 1_000_000_000_000
        monkeypatch.setattr("time.time_ns", lambda: self.now)
        self.samplers: list[tuple[str, Sampling]] = []
        self._per_s = per_s
        self.consumers = Consumers()
        self.monitor = quiet_monitor(folder, self.consumers, sampler=self._make)  # type: ignore[arg-type]
        self.monitor.profiler = self.profiler = Sessions()  # type: ignore[assignment]

    def _make(self) -> Sampling | None:
        if self._per_s is None:
            return None
        self.samplers.append((self.monitor._state, Sampling(self._per_s)))
        return self.samplers[-1][1]

    def train(self, steps: int = 5000, kind: str = "keras.fit") -> RunWindow:
        consumer = self.consumers.at(kind, None, None)
        try:
            for _ in range(steps):
                self.monitor.boundary(consumer)
                self.now += int(STEP_S * 1e9)
        except StopScript:
            pass
        return self.monitor

    @property
    def warmup_s(self) -> float:
        assert self.monitor.capture is not None
        return (self.monitor.capture.window.plain_start_ns - self.start) / 1e9


def test_without_python_functions_the_pause_is_as_short_as_ever(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch, None)
    capture = run.train().capture
    assert capture is not None and capture.python_samples is None
    assert run.warmup_s < 2.5


def test_a_pause_looks_only_once_for_python_functions():
    made = []
    samples = PauseSamples(lambda: made.append(1))
    for _ in range(3):
        samples.begin()
    assert made == [1] and not samples.is_waiting
    samples.end()
    samples.begin()
    assert made == [1, 1], "the next pause looks again"


def test_the_pause_lasts_until_there_are_enough_samples_and_the_profile_has_no_sampler(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch, PAUSE_SAMPLES.value / 1.8)
    capture = run.train().capture
    assert capture is not None and capture.python_samples is not None
    assert [state for state, _ in run.samplers] == ["idle", "pause"]  # the first one is that of the trial
    assert 2.8 < run.warmup_s < 3.2
    samples, window = capture.python_samples, capture.window
    assert samples.ticks >= PAUSE_SAMPLES.value
    assert samples.duration_ns == window.end_ns - window.start_ns  # what they stand for


def test_where_little_python_runs_the_pause_ends_at_its_limit(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch, 3.0)
    capture = run.train().capture
    assert capture is not None and capture.python_samples is not None
    assert [state for state, _ in run.samplers] == ["idle", "pause"]
    assert PAUSE_SAMPLING_S.value + 0.9 < run.warmup_s < PAUSE_SAMPLING_S.value + 1.5


def test_a_script_that_ends_in_the_pause_keeps_the_samples_of_its_trial(tmp_path, monkeypatch):
    run = Run(tmp_path, monkeypatch, 50.0)
    run.train(steps=int(1.5 / STEP_S))
    run.monitor.script_ended("finished")
    capture = run.monitor.capture
    assert capture is not None and capture.python_samples is not None
    assert capture.python_samples.ticks == run.samplers[0][1].samples
    assert [sampler._end_ns is not None for _, sampler in run.samplers] == [True, True]


def test_too_few_samples_of_a_short_pause_are_not_used(monkeypatch):
    now = 0
    monkeypatch.setattr("time.time_ns", lambda: now)
    samples = PauseSamples(lambda: Sampling(10.0))  # type: ignore[arg-type, return-value]
    samples.begin()
    assert samples.is_waiting
    now += 1_000_000_000
    samples.end()
    assert not samples.is_waiting
    assert samples.sampler_of_window() is not None


def test_another_loop_is_sampled_anew(monkeypatch):
    now = 0
    monkeypatch.setattr("time.time_ns", lambda: now)
    samples = PauseSamples(lambda: Sampling(1000.0))  # type: ignore[arg-type, return-value]
    samples.begin()
    now += 1_000_000_000
    samples.end()
    assert samples.sampler_of_window() is None
    samples.forget()
    assert samples.sampler_of_window() is not None
