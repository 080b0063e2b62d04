"""Opens and closes the measurement window at step boundaries and stops the script afterwards.

In: step boundaries from the hooks (in the consumer's thread), and polls of the watchdog if there are no step boundaries.
Out: the best `Capture`; then a `StopScript` at the next boundary.

States: idle -> trial -> pause -> unprofiled -> open -> closed. The trial is a short profile that starts after two steps, so that
there is a measurement even if the script ends soon. During the pause, the buffers that filled up while the trial was written
drain, and the Python functions of pipelines are sampled. Trial and pause are skipped if the user sets the warm-up. In state
`unprofiled`, steps are timed without the profiler; in state `open`, with it. State `open` is skipped if there is no time for it:
the trial's profile is the one of the run then.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps, LongCall
from advisor.capture.window.buffer_watch import BufferWatch
from advisor.capture.window.idle_steps import IdleSteps
from advisor.capture.window.leader import is_foreign_thread, takes_the_lead
from advisor.capture.window.loop_window import LoopWindow
from advisor.capture.window.measurement import Measurement
from advisor.capture.window.python_sampler import PythonSampler
from advisor.capture.window.run_window import RunWindow
from advisor.capture.window.schedule import Limits
from advisor.capture.window.script_end import ScriptEnd
from advisor.host.calibration.window import (
    AUTOTUNE_FIRST_CALLS,
    BOUNDARY_NS,
    CHECK_NS,
    ENDING_STEPS,
    PATIENCE_S,
    TRIAL_SECONDS,
    TRIAL_STEPS,
    WARMUP_STEPS,
)
from advisor.host.machine import schedulable_cores
from advisor.model.window_readings import BufferLevels

_OWN_SESSION = (
    "The program's own profiler session was running, and TensorFlow supports only one; stop that session first, or run "
    "`advisor analyze` on its logdir."
)


class Monitor(RunWindow):
    """Controls the window of a run. The hooks call `boundary` for each step of each consumer."""

    def __init__(
        self,
        out: Path,
        limits: Limits,
        consumers: Consumers,
        *,
        is_to_end: bool,
        is_profiling: bool,
        report: Callable[[str, int, int | None], None],
        warn: Callable[[str], None],
        on_measured: Callable[[], None],
        on_stuck: Callable[[str], NoReturn],
        sampler: Callable[[], PythonSampler | None] = lambda: None,
    ) -> None:
        """Create a monitor in state `idle`.

        Args:
            out: The run folder.
            limits: When to open and close the window.
            consumers: The consumers.
            is_to_end: Do not stop the script after the window.
            is_profiling: Use the profiler.
            report: Called with the phase, the number of completed steps and the total number (None: unknown).
            warn: Called with the text of each warning.
            on_measured: Called when a complete window has been written.
            on_stuck: Called with the reason if the script does not stop; must end the process.
            sampler: Makes a sampler of the pipelines' Python functions; None if there are none.
        """
        super().__init__(
            out, limits, consumers, is_profiling=is_profiling, report=report, on_measured=on_measured, sampler=sampler
        )
        self.script_end = ScriptEnd(on_stuck)
        self.idle_steps = IdleSteps()
        self._buffer = BufferWatch()
        self._is_to_end = is_to_end
        self._has_trial = is_profiling and limits.warmup is None
        self._warn = warn
        self._may_grow = schedulable_cores() > AUTOTUNE_FIRST_CALLS.value
        """Whether AUTOTUNE may make more parallel calls than it starts with."""
        self._next_check_ns = 0
        self._end_at_step: float = math.inf
        """Number of steps at which to check whether the loop is about to end."""
        self._ended: ConsumerSteps | None = None
        """A loop that was about to end, and is not measured any more."""
        self._lock = threading.RLock()
        self._is_off = False

    def has_profiled_since(self, time_ns: int) -> bool:
        """Return whether the profiler has been running, or has been writing its profile, since a Unix time in ns."""
        if self.later is not None and self.later.has_profiled_since(time_ns):
            return True
        return self._is_profiling and (self._state in ("trial", "open") or self._closed_ns >= time_ns)

    def buffer_levels(self) -> tuple[BufferLevels, ...]:
        """Return how full the last buffer of the measured consumer's pipeline was; empty if that is unknown."""
        levels = self._buffer.levels()
        consumer = self.capture.consumer if self.capture is not None else self.leader
        return (levels,) if levels is not None and consumer is not None and levels.consumer_id == consumer.id else ()

    # -- long calls

    def call_began(self, call: LongCall) -> None:
        """Note that a thread has entered a call into TensorFlow that may take long. Such calls are not nested."""
        self._long_calls.began(call)

    def call_ended(self, thread_id: int) -> None:
        """Note that the thread has returned from TensorFlow."""
        self._long_calls.ended(thread_id)

    def running_since(self, consumer: ConsumerSteps) -> int:
        """Return when the current call into TensorFlow of this consumer began, Unix time in ns; 0 if none is running."""
        return self._long_calls.running_since(consumer)

    # -- step boundaries

    def boundary(self, consumer: ConsumerSteps) -> int:
        """Handle a step boundary: a step of `consumer` has ended and another one begins.

        Returns:
            The start of the new step, Unix time in ns.

        Raises:
            StopScript: The window has been measured.
        """
        now = time.time_ns()
        consumer.thread_id = threading.get_ident()
        if self.idle_steps.is_running:
            if self.idle_steps.goes_on and consumer.open_since_ns:
                consumer.end(now)  # the step that took the element
            if self.idle_steps.boundary(consumer, now):
                if not self.idle_steps.goes_on:
                    self.stop_script()
                consumer.begin(time.time_ns())
            return time.time_ns()
        if consumer.open_since_ns:
            consumer.end(now)
        if self._measurement is not None and consumer is self.leader and self._buffer.is_due(now):
            self._buffer.read(consumer, now)
            now = time.time_ns()
        if not self._is_off and (
            now >= self._next_check_ns
            or consumer.count <= WARMUP_STEPS.value
            or consumer.count >= self._check_at_step
            or (consumer is self.leader and consumer.count >= self._end_at_step)
        ):
            try:
                with self._lock:
                    is_over = self._act(consumer, now)
                if is_over and consumer is self.leader:
                    is_over = not self.idle_steps.begin(consumer, self.buffer_levels(), time.time_ns())
                if is_over:
                    self.stop_script()
            except Exception as error:  # an error of the monitor must not stop the script
                self._is_off = True
                self._cancel_later()
                self._pause_samples.end()
                self._warn(f"The measurement was stopped by an internal error ({type(error).__name__}: {error}).")
            now = time.time_ns()
        if not self.idle_steps.is_running or self.idle_steps.goes_on:
            consumer.begin(now)
        return now

    def data_ended(self, consumer: ConsumerSteps) -> None:
        """Stop the script if its data end just when an element was to be given to it again, unless it goes on.

        Raises:
            StopScript: It is so.
        """
        if self.idle_steps.is_waiting_for_last(consumer):
            self.idle_steps.end()
            if not self.idle_steps.goes_on:
                self.stop_script()

    def _act(self, consumer: ConsumerSteps, now: int) -> bool:
        """Open or close a window, if it is time; return whether the script is to be stopped here."""
        if self._state == "closed":
            return self._after_close(consumer, now)
        if consumer is not self.leader:
            self._consider(consumer)
            if consumer is not self.leader:
                return False
        if consumer is self._ended:
            return False
        if self.profiler is not None and self.profiler.is_users_running:
            self._note_unprofiled(_OWN_SESSION)
            return False
        if self._is_ending(consumer):
            self._end("script ended")
            self._ended = consumer
            self.idle_steps.begin(consumer, self.buffer_levels(), time.time_ns(), goes_on=True)
            return False
        elapsed_s = (now - consumer.first_ns) / 1e9 if consumer.first_ns else 0.0
        is_settled = self._limits.is_settled(
            consumer.count, elapsed_s, self._time_left(consumer, now), consumer.first_s if self._may_grow else 0.0
        )
        match self._state:
            case "idle" if is_settled:
                self._open(consumer, "unprofiled" if self._is_profiling else "open")
            case "idle" if self._has_trial and consumer.count >= TRIAL_STEPS.value:
                self._open(consumer, "trial")
            case "trial" if self._measurement and now - self._measurement.start_ns >= TRIAL_SECONDS.value * 1e9:
                self._close("trial")
                if is_settled and self._is_pause_over(consumer, time.time_ns()):
                    self._open(consumer, "unprofiled")
            case "pause" if is_settled and self._is_pause_over(consumer, now):
                self._open(consumer, "unprofiled")
            case "unprofiled" if self._measurement and self._profile_if_timed(consumer, self._measurement, now):
                return self._after_close(consumer, now)
            case "open" if (
                self._measurement and self._loop is None and self._is_closed(consumer, self._measurement, now)
            ):
                return self._after_close(consumer, now)
        if self._state == "pause":
            self._pause_samples.begin()
        if self._state not in ("unprofiled", "open"):
            self._report("warming up", consumer.count, self._limits.warmup or WARMUP_STEPS.value)
        self._next_check_ns = time.time_ns() + CHECK_NS.value
        return False

    def _is_ending(self, consumer: ConsumerSteps) -> bool:
        """Whether the loop ends by itself after the next steps, before its window has, and is to make steps without input."""
        if not self.idle_steps.is_wanted or not self.idle_steps.may_go_on:
            return False
        if self._state not in ("pause", "unprofiled", "open"):
            return False
        last_step = consumer.last_step
        self._end_at_step = math.inf if last_step is None else last_step - ENDING_STEPS.value
        if consumer.count < self._end_at_step or (self.capture is None and self._state != "open"):
            return False
        return self.idle_steps.may_begin(consumer, self.buffer_levels())

    def _profile_if_timed(self, consumer: ConsumerSteps, measurement: Measurement, now: int) -> bool:
        """Start the profiler if enough steps were timed, or close the window if it is too late; return whether it was closed."""
        elapsed_s = (now - measurement.start_ns) / 1e9
        self._report("timing", consumer.count - measurement.first_step, self._limits.steps)
        if self._limits.is_too_early(consumer.count - measurement.first_step, elapsed_s):
            return False
        left = self._time_left(consumer, now)
        if self._limits.is_timed(consumer.durations(measurement.first_step), elapsed_s, left, consumer.epoch_steps):
            if left.is_over and self._finish_with_trial(measurement):
                return True
            measurement.end_unprofiled()
            measurement.start_profiler()
            self._state = "open"
            self._check_at_step = consumer.count + self._limits.steps_to_check()
        return False

    def _is_closed(self, consumer: ConsumerSteps, measurement: Measurement, now: int) -> bool:
        """Close the window if enough was measured; return whether it was."""
        durations = consumer.durations(measurement.first_step)
        per_step = None if self.capture is None else self.capture.events_per_step
        elapsed_s = (now - measurement.start_ns) / 1e9
        left = self._time_left(consumer, now)
        reason = self._limits.closing_reason(durations, elapsed_s, per_step, left, consumer.epoch_steps)
        self._report("profiling", len(durations), self._limits.steps)
        self._check_at_step = measurement.first_step + self._limits.steps_to_check(len(durations), elapsed_s)
        if reason is not None:
            self._close(reason)
        return reason is not None

    def _consider(self, consumer: ConsumerSteps) -> None:
        """Make this consumer the leader if it is more likely to be the training loop."""
        leader = self.leader
        if leader is None:
            self.leader = consumer
            return
        if takes_the_lead(consumer, leader) and not is_foreign_thread():
            self._close("script ended")
            self._pause_samples.forget()
            self._state = "idle"
            self.leader = consumer

    def script_profiles(self) -> None:
        """Close the window because the script is about to start its own profiler session."""
        self._warn("The script uses TensorFlow's profiler itself; the window was moved to avoid the script's session.")
        with self._lock:
            self._close("trial")
            self._cancel_later()

    def _cancel_later(self) -> None:
        if self.later is not None:
            with contextlib.suppress(Exception):
                self.later.cancel()

    def script_ended(self, how: str) -> None:
        """Close the window because the script has ended.

        Args:
            how: Kind of the `ScriptExit`.
        """
        with self._lock:
            self._is_off = True
            for consumer in self._consumers.all():
                if consumer.open_since_ns and how == "finished":
                    consumer.end(time.time_ns())
            self._cancel_later()
            with contextlib.suppress(Exception):
                self._end({"failed": "script failed", "interrupted": "interrupted"}.get(how, "script ended"))

    def switch_off(self) -> None:
        """Turn the monitor off in a forked process."""
        self._is_off = True
        self._consumers.after_fork()
        self._lock = threading.RLock()  # another thread may have held it during the fork

    # -- the end of the script

    def _after_close(self, consumer: ConsumerSteps, now: int) -> bool:
        """Go on after the window; return whether the script is to be stopped here."""
        leader = self.leader
        if (
            leader is not None
            and consumer.rank > leader.rank
            and consumer.count >= TRIAL_STEPS.value
            and not self.script_end.count
        ):
            self._cancel_later()
            self._pause_samples.forget()
            self._state = "idle"  # a training loop follows a loop that does not train
            self.leader = consumer
        elif self._is_to_end and self.later is not None:
            self.later.boundary(consumer, leader, now)
            self._next_check_ns = time.time_ns() + CHECK_NS.value
        elif self._is_to_end:
            self._is_off = True
        elif leader is not None and consumer.thread_id != leader.thread_id and not self.script_end.count:
            # A pipeline's own thread (a generator that reads another dataset): an exception there would be the script's.
            # If the training makes no step any more, the watchdog stops the script.
            self._next_check_ns = now + CHECK_NS.value
        elif self.script_end.count or not self._is_waiting(now):
            self._is_off = True  # other threads and the watchdog do nothing meanwhile
            return True
        else:
            self._next_check_ns = now + CHECK_NS.value
        return False

    def stop_script(self) -> NoReturn:
        """Stop the script in this thread, at a step boundary.

        Without the lock: a thread that holds the script here may need its other threads.

        Raises:
            StopScript: Always.
        """
        self.script_end.announce()
        with self._lock:
            self._is_off, self._next_check_ns = False, 0
            self.script_end.note()
        self.script_end.raise_here()

    def _is_waiting(self, now: int) -> bool:
        leader = self.leader
        return (
            self._is_profiling
            and leader is not None
            and not leader.is_training
            and not leader.has_work
            and (now - self._closed_ns < PATIENCE_S.value * 1e9)
        )

    # -- without step boundaries

    def poll(self, now: int) -> None:
        """Open and close windows by time, and stop the script. Called by the watchdog a few times per second.

        Args:
            now: Unix time in ns.
        """
        if self.profiler is not None:
            self.profiler.memory.look()
        with self._lock:
            if self.idle_steps.is_silent(now):
                self.idle_steps.end()
                self._is_off = False
            if self._is_off:
                return
            if self._state == "closed":
                if self._is_to_end:
                    self._poll_later(now)
                elif not self.script_end.count and not self._is_waiting(now - BOUNDARY_NS.value):
                    call, self._next_check_ns = self._long_calls.to_stop(self.leader), 0
                    self.script_end.raise_elsewhere(call, self._long_calls.grace_s(call) if call is not None else 0.0)
            elif self._measurement is not None and self._loop is not None:
                elapsed_s = (now - self._measurement.start_ns) / 1e9
                self._report("profiling", int(elapsed_s), math.ceil(max(elapsed_s, self._loop.expected_s)))
                if self.leader is not None and self._buffer.is_due(now):
                    self._buffer.read(self.leader, now)
                if self._loop.is_over(elapsed_s):
                    self._close("seconds")
            elif self.profiler is not None and not self.profiler.is_users_running:
                loop = self._long_calls.loop(now)
                if loop is not None:
                    self._open_by_time(loop)

    def _poll_later(self, now: int) -> None:
        later = self.later
        if later is None:
            return
        loop = self._long_calls.loop(now) if later.is_wanted else None
        try:
            later.poll(now, loop.consumer if loop is not None and loop.consumer.is_loop else None)
        except Exception as error:
            self._cancel_later()
            self.later = None
            self._warn(f"There were no more windows because of an internal error ({type(error).__name__}: {error}).")

    def _open_by_time(self, call: LongCall) -> None:
        if self.leader is not None and self.leader is not call.consumer and self.leader.rank > call.consumer.rank:
            return
        self._close("trial")
        call.consumer.is_loop = True
        self.leader = call.consumer
        self._open(call.consumer, "open")
        self._loop = LoopWindow(
            call.consumer, self._limits.seconds, age_s=self._loop_age_s(), writing_s=self._writing_s
        )
