"""Windows after the run's own one, opened when `advisor watch` asks for them.

In: requests, step boundaries of all consumers, polls of the watchdog.  Out: each window as a `Capture`; the script goes on.

A window times steps without the profiler first, then with it, for two seconds each. It is closed by time even if no step ends, so
that the profiler's events stay few. A session of the script has precedence: the window is discarded and opened again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.capture.window.measurement import Capture, Measurement
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.python_sampler import PythonSampler
from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import (
    FOLLOW_AFTER_S,
    LATER_EVENTS,
    LATER_LIMIT_S,
    LATER_SECONDS,
    LOOP_SECONDS,
)


class LaterWindows:
    """The windows of one run after its own. The monitor calls all methods but `ask` with its lock held."""

    def __init__(
        self,
        consumers: Consumers,
        profiler: Callable[[], Profiler | None],
        sampler: Callable[[], PythonSampler | None],
        write: Callable[[Capture, str], None],
    ) -> None:
        """Create the windows; none is opened.

        Args:
            consumers: The consumers.
            profiler: Returns the profiler; None as long as TensorFlow is not imported.
            sampler: Makes a sampler of the pipelines' Python functions; None if there are none.
            write: Called with each window and why it has no profile (empty if it has one), in the thread that closes it.
        """
        self._consumers, self._profiler, self._sampler, self._write = consumers, profiler, sampler, write
        self._limits = Limits(seconds=LATER_SECONDS.value, max_events=LATER_EVENTS.value)
        self._wanted: Path | None = None
        """Folder for the next window; None: none is wanted."""
        self._folder: Path | None = None
        """Folder of the open window."""
        self._measurement: Measurement | None = None
        self._consumer: ConsumerSteps | None = None
        """The consumer whose steps are measured."""
        self._is_profiling = False
        """Whether the open window has reached its stretch with the profiler."""
        self._is_by_time = False
        """Whether the consumer shows no steps."""
        self._opened_ns = self._closed_ns = 0
        self.events_per_step: float | None = None
        """Estimate from the latest window; None if unknown."""

    @property
    def is_wanted(self) -> bool:
        """Whether a window is to be opened."""
        return self._wanted is not None

    def ask(self, folder: Path) -> None:
        """Open a window at the next step. May be called in any thread; a request that has not been met is replaced.

        Args:
            folder: Run folder of the window; it may not exist yet.
        """
        self._wanted = folder

    def has_profiled_since(self, time_ns: int) -> bool:
        """Return whether the profiler has been running, or has been writing a profile, since a Unix time in ns."""
        return self._is_profiling or self._closed_ns >= time_ns

    def boundary(self, consumer: ConsumerSteps, leader: ConsumerSteps | None, now: int) -> None:
        """Handle a step boundary of any consumer.

        Args:
            consumer: The consumer.
            leader: The consumer that the run's own window followed.
            now: Unix time in ns.
        """
        measurement = self._measurement
        if measurement is None:
            if self._wanted is not None and _is_followed(consumer, leader, now):
                self._open(self._wanted, consumer, now)
        elif consumer is not self._consumer or self._is_by_time:
            self._close_if_overdue(now)
        elif self._is_profiling:
            elapsed_s = (now - measurement.start_ns) / 1e9
            durations = consumer.durations(measurement.first_step)
            reason = self._limits.closing_reason(durations, elapsed_s, self.events_per_step)
            if reason is not None:
                self._close(reason)
        elif now - self._opened_ns >= LATER_SECONDS.value * 1e9:
            measurement.end_unprofiled()
            self._start_profiler(measurement)

    def poll(self, now: int, loop: ConsumerSteps | None) -> None:
        """Handle the time between step boundaries.

        Args:
            now: Unix time in ns.
            loop: A consumer inside a tf.function, whose steps cannot be seen; None if there is none.
        """
        if self._measurement is not None:
            self._close_if_overdue(now)
        elif self._wanted is not None and loop is not None:
            self._open(self._wanted, loop, now)
            if self._measurement is not None:
                self._is_by_time = True
                self._start_profiler(self._measurement)

    def cancel(self) -> None:
        """Discard the open window, and open it again at a later step."""
        measurement, self._measurement = self._measurement, None
        if measurement is None:
            return
        measurement.abandon()
        self._wanted = self._wanted or self._folder
        self._closed_ns = time.time_ns() if self._is_profiling else self._closed_ns
        self._is_profiling = False

    def _open(self, folder: Path, consumer: ConsumerSteps, now: int) -> None:
        profiler = self._profiler()
        if profiler is None or profiler.is_users_running:
            return
        self._wanted, self._folder, self._consumer = None, folder, consumer
        self._measurement = Measurement(folder, consumer, self._consumers, profiler, self._sampler())
        self._opened_ns, self._is_profiling, self._is_by_time = now, False, False

    def _start_profiler(self, measurement: Measurement) -> None:
        self._is_profiling = True
        measurement.start_profiler()

    def _close_if_overdue(self, now: int) -> None:
        """Close a window whose consumer makes no steps: it is blocked, or another one has its turn."""
        measurement, consumer = self._measurement, self._consumer
        if measurement is None or consumer is None:
            return
        profiled_ns = now - measurement.start_ns
        if self._is_by_time:
            is_overdue = profiled_ns >= LOOP_SECONDS.value * 1e9
        else:
            has_steps = self._is_profiling and consumer.count > measurement.first_step
            is_overdue = (has_steps and profiled_ns >= 2 * LATER_SECONDS.value * 1e9) or (
                now - self._opened_ns >= LATER_LIMIT_S.value * 1e9
            )
        if not is_overdue:
            return
        if self._is_profiling:
            self._close("seconds")
        else:
            self.cancel()

    def _close(self, reason: str) -> None:
        measurement, self._measurement = self._measurement, None
        if measurement is None:
            return
        try:
            capture = measurement.close(reason, lambda steps: None)
            self.events_per_step = capture.events_per_step
            problem = "" if capture.profile_bytes else measurement.unprofiled or "The profiler recorded nothing."
            self._write(capture, problem)
        except BaseException:
            measurement.abandon()
            raise
        finally:
            self._is_profiling = False
            self._closed_ns = time.time_ns()


def _is_followed(consumer: ConsumerSteps, leader: ConsumerSteps | None, now: int) -> bool:
    """Return whether a window may follow this consumer: the training loop, or another one that has taken its place."""
    if leader is None or consumer is leader:
        return True
    if consumer.rank < leader.rank or leader.open_since_ns:
        return False
    latest = leader.ends[-1] if leader.ends else 0
    return now - latest >= FOLLOW_AFTER_S.value * 1e9
