"""The window of a run: opens and closes it, and keeps the best capture so far.

In: the state to open it in, the reason to close it.  Out: the best `Capture`, and its profile in the run folder.
`Monitor` decides when.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.window.later_windows import LaterWindows
from advisor.capture.window.long_calls import LongCalls
from advisor.capture.window.loop_window import LoopWindow
from advisor.capture.window.measurement import Capture, Measurement
from advisor.capture.window.pause_samples import PauseSamples
from advisor.capture.window.profiler import Profiler, move_profile
from advisor.capture.window.python_sampler import PythonSampler
from advisor.capture.window.schedule import SHORTEST, Limits, has_drained
from advisor.capture.window.time_left import TimeLeft, time_left
from advisor.host.calibration.window import COUNTED_START_S, ENOUGH_STEPS, MIN_STEPS

_EARLY = frozenset({"trial", "script ended", "script failed", "interrupted"})
"""Reasons for closing a window before enough was measured."""


class RunWindow:
    """The window of a run, with its state; see `Monitor` for the order of the states."""

    def __init__(
        self,
        out: Path,
        limits: Limits,
        consumers: Consumers,
        *,
        is_profiling: bool,
        report: Callable[[str, int, int | None], None],
        on_measured: Callable[[], None],
        sampler: Callable[[], PythonSampler | None],
    ) -> None:
        """Create a window in state `idle`. See `Monitor` for the arguments."""
        self.profiler: Profiler | None = None
        self.later: LaterWindows | None = None
        """Windows after the run's own one, for a script that runs to its end; None: there are none."""
        self.capture: Capture | None = None
        self.unprofiled = ""
        """Why there is no profile, in one sentence; empty if there is one or none was attempted."""
        self.leader: ConsumerSteps | None = None
        """The consumer that the window follows."""
        self._long_calls = LongCalls()
        self._out, self._limits, self._consumers = out, limits, consumers
        self._is_profiling = is_profiling
        self._report, self._on_measured = report, on_measured
        self._pause_samples = PauseSamples(sampler)
        self._state = "idle"
        self._measurement: Measurement | None = None
        self._loop: LoopWindow | None = None
        """The end of the current window, if it is on a loop whose steps are not visible; None: it ends after steps."""
        self._pause = (0, 0)
        """(number of steps, time in ns) at the start of the pause."""
        self._writing_s = 0.0
        """How long the latest profile was written."""
        self._made_ns = time.time_ns()
        self._check_at_step: float = math.inf if limits.warmup is None else limits.warmup
        """Number of steps at which to check regardless of the time since the last check, so that the user's limits are met
        exactly."""
        self._closed_ns = 0
        self._folders = 0

    def _open(self, consumer: ConsumerSteps, state: str) -> None:
        self._pause_samples.end()
        self._folders += 1
        folder = self._out / f".capture-{self._folders}"
        profiler = self.profiler if self._is_profiling else None
        self._measurement = Measurement(
            folder, consumer, self._consumers, profiler, self._pause_samples.sampler_of_window()
        )
        if state != "unprofiled":
            self._measurement.start_profiler()
        self._check_at_step = self._measurement.first_step + self._limits.steps_to_check()
        self._state, self._loop = state, None

    def _close(self, reason: str) -> None:
        """Close the current window, if there is one, and keep its capture if it is the best so far."""
        measurement, self._measurement = self._measurement, None
        self._pause_samples.end()
        if measurement is None:
            return
        self._check_at_step = math.inf
        if self._state == "unprofiled":
            measurement.abandon()
            self._state = "pause"
            return
        is_final = reason not in _EARLY
        began_ns = time.time_ns()
        capture = measurement.close(
            "script ended" if reason == "trial" else reason,
            lambda steps: None if reason == "trial" else self._report("saving", steps, None),
        )
        capture = self._pause_samples.added_to(capture)
        self._closed_ns = time.time_ns()
        self._writing_s = (self._closed_ns - began_ns) / 1e9
        self._pause = (self.leader.count if self.leader is not None else 0, self._closed_ns)
        longer = self._longer_loop(capture.folder) if is_final else None
        self._state = "closed" if is_final and longer is None else "pause"
        if self.capture is None or _is_better(capture, self.capture, is_final):
            self.capture = capture
        self._note_unprofiled(measurement.unprofiled)
        if self.later is not None:
            self.later.events_per_step = self.capture.events_per_step
        if longer is not None and self.leader is not None:
            self._open(self.leader, "open")
            self._loop = longer
        elif is_final:
            self._on_measured()

    def _end(self, reason: str) -> None:
        """Close the current window because its loop has ended, or is about to, with what has been measured.

        Args:
            reason: Why, as in `Window.closed_by`.
        """
        measurement, trial = self._measurement, self.capture
        if measurement is not None and trial is not None:
            # The last steps of a loop get what is left in the buffers, so a short profile of them says nothing of all others.
            is_same = measurement.has_unprofiled and trial.consumer is measurement.consumer
            is_short = is_same and measurement.stretch_steps < trial.window.steps
            if self._state == "unprofiled" or (self._state == "open" and is_short):
                self.capture = self._pause_samples.added_to(measurement.add_unprofiled_to(trial))
                self._state = "unprofiled"  # its profile is abandoned
        self._close(reason)

    def _note_unprofiled(self, why: str) -> None:
        has_profile = self.capture is not None and self.capture.profile_bytes > 0
        self.unprofiled = "" if has_profile else why

    def _finish_with_trial(self, measurement: Measurement) -> bool:
        """End the window after the stretch without the profiler, if the trial has profiled a step; return whether it has."""
        trial = self.capture
        if trial is None or not trial.has_steps_of(measurement.consumer):
            return False
        self.capture = self._pause_samples.added_to(measurement.add_unprofiled_to(trial, "seconds"))
        measurement.abandon()
        self._measurement, self._state, self._closed_ns = None, "closed", time.time_ns()
        self._on_measured()
        return True

    def settle(self) -> None:
        """Move the best profile to its place in the run folder and remove the other ones."""
        if self.capture is not None and self.capture.folder.is_dir():
            move_profile(self.capture.folder, self._out)
        for number in range(1, self._folders + 1):
            shutil.rmtree(self._out / f".capture-{number}", ignore_errors=True)

    # -- loops without visible steps, and the time that is left

    def _longer_loop(self, folder: Path) -> LoopWindow | None:
        """The window that follows the one on a loop whose profile is in `folder`, if no iterator ran in that one."""
        loop, self._loop = self._loop, None
        if loop is None or not self._long_calls.is_in(self.leader):
            return None
        return loop.longer(folder, self._loop_age_s(), self._writing_s)

    def _loop_age_s(self) -> float:
        """As `_age_s`, for the loop inside a tf.function that the window follows; there is no limit if the user set others."""
        if not self._limits.is_adaptive:
            return -math.inf
        began_ns = [call.start_ns for call in self._long_calls.now() if call.consumer is self.leader]
        return self._age_s(min(began_ns, default=self._made_ns), time.time_ns())

    def _is_pause_over(self, consumer: ConsumerSteps, now: int) -> bool:
        """Whether buffers are as usual again, and Python functions were seen often enough."""
        paused_steps, paused_s = consumer.count - self._pause[0], (now - self._pause[1]) / 1e9
        left = self._time_left(consumer, now)
        if left.has_step_before(*SHORTEST) and self._pause_samples.is_waiting:
            return False
        return has_drained(paused_steps, paused_s, left, self._writing_s)

    def _time_left(self, consumer: ConsumerSteps, now: int) -> TimeLeft:
        """The time until the window has to be closed. There is no limit if the user has set others."""
        if not self._limits.is_adaptive or not self._is_profiling:
            return TimeLeft()
        steps_ns = consumer.durations(max(1, consumer.count - MIN_STEPS.value))
        return time_left(self._age_s(consumer.first_ns, now), steps_ns, self._writing_s)

    def _age_s(self, first_ns: int, now: int) -> float:
        """Seconds of the run that count for the time until the first verdict; `first_ns`: when its loop began."""
        return (now - max(self._made_ns, first_ns - int(COUNTED_START_S.value * 1e9))) / 1e9


def _is_better(new: Capture, old: Capture, is_final: bool) -> bool:
    if bool(new.profile_bytes) != bool(old.profile_bytes):
        return bool(new.profile_bytes)  # for one of the windows the profiler could not be started
    if is_final:
        return True
    if new.consumer is not None and old.consumer is not None and new.consumer.rank != old.consumer.rank:
        return new.consumer.rank > old.consumer.rank
    return new.window.steps >= min(ENOUGH_STEPS.value, old.window.steps)
