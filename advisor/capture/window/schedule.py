"""Decides when to open and close the window, from step times only and without TensorFlow.

In: the durations of a consumer's steps and the limits set by the user.  Out: `is_settled`, `closing_reason`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.capture.window.time_left import TimeLeft
from advisor.host.calibration.window import (
    LOOK_FACTOR,
    MAX_EVENTS,
    MAX_HALF_WIDTH,
    MAX_SECONDS,
    MAX_STEPS,
    MIN_SECONDS,
    MIN_STEPS,
    PAUSE_SECONDS,
    PAUSE_STEPS,
    RESTLESS_SECONDS,
    SETTLE_S,
    SHORT_PAUSE_SHARE,
    SHORT_PROFILED_STEPS,
    SHORT_SECONDS,
    SLOW_PAUSE_SECONDS,
    SLOW_PAUSE_STEPS,
    SLOW_SECONDS,
    SLOW_STEPS,
    SLOW_WARMUP_S,
    SLOW_WARMUP_STEPS,
    UNPROFILED_MAX_SECONDS,
    UNPROFILED_MIN_STEPS,
    UNPROFILED_SECONDS,
    UNPROFILED_SLOW_SECONDS,
    WARMUP_STEPS,
    WHOLE_EPOCHS_STRETCH,
)
from advisor.model.intervals import mean_of

_PLENTY = TimeLeft()
SHORTEST = UNPROFILED_MIN_STEPS.value, SHORT_PROFILED_STEPS.value
"""Steps of both stretches of a window for which there is hardly any time."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits set by the user; None: adaptive."""

    warmup: int | None = None
    """Open the window after this many steps."""
    steps: int | None = None
    """Close the window after this many steps."""
    seconds: float | None = None
    """Close the window after this many seconds."""
    max_events: int = MAX_EVENTS.value
    """Close the window before the profile has more than approximately this many events."""
    epoch_steps: int | None = None
    """Close the window after `seconds` only when it holds a multiple of this many steps; see `CaptureRequest`."""

    @property
    def is_adaptive(self) -> bool:
        """Whether the user has set none of the first three."""
        return self.warmup is None and self.steps is None and self.seconds is None

    def is_settled(self, steps: int, elapsed_s: float, left: TimeLeft = _PLENTY, first_s: float = 0.0) -> bool:
        """Return whether the warm-up is over.

        Args:
            steps: Number of steps so far.
            elapsed_s: Time since the start of the first step.
            left: Time until the window has to be closed.
            first_s: How long the first element took, if AUTOTUNE may have to see elements before it has grown; else 0.
        """
        if self.warmup is not None:
            return steps >= self.warmup
        if (
            elapsed_s < LOOK_FACTOR.value * first_s + PAUSE_SECONDS.value
            and left.has_step_before(*SHORTEST)
            and first_s
        ):
            return False
        if steps >= WARMUP_STEPS.value:
            return elapsed_s >= SETTLE_S.value
        is_enough = elapsed_s >= SLOW_WARMUP_S.value or not left.has_step_before(*SHORTEST)
        return steps >= SLOW_WARMUP_STEPS.value and is_enough

    def is_too_early(self, count: int, elapsed_s: float) -> bool:
        """Return True if `is_timed` is False whatever the step times are. Cheaper than `is_timed`.

        Args:
            count: Number of steps in the stretch without the profiler.
            elapsed_s: Time since its start.
        """
        if self.steps is not None and count >= self.steps:
            return False
        return elapsed_s < (
            UNPROFILED_SECONDS.value if self.seconds is None else min(UNPROFILED_SECONDS.value, self.seconds)
        )

    def is_timed(
        self,
        steps_ns: Sequence[int],
        elapsed_s: float,
        left: TimeLeft = _PLENTY,
        epoch_steps: int | None = None,
    ) -> bool:
        """Return whether enough steps have been timed without the profiler, so that it can be started.

        The user's limits for the profiled stretch apply to this one too, so it is never the longer one of the two.

        Args:
            steps_ns: Durations of the steps in the stretch without the profiler.
            elapsed_s: Time since its start.
            left: Time until the window has to be closed.
            epoch_steps: Steps of an epoch, of which the stretch should hold at least one; None: unknown.
        """
        count = len(steps_ns)
        if self.steps is not None and count >= self.steps:
            return True
        if self.seconds is not None and elapsed_s >= self.seconds:
            return True
        if count >= MIN_STEPS.value:
            is_stable = elapsed_s >= UNPROFILED_SECONDS.value and half_width(steps_ns) <= MAX_HALF_WIDTH.value
            is_stable = is_stable and (epoch_steps is None or count >= epoch_steps)
            return is_stable or elapsed_s >= UNPROFILED_MAX_SECONDS.value
        least_s = (
            UNPROFILED_SLOW_SECONDS.value if left.has_step_before(SHORT_PROFILED_STEPS.value) else SHORT_SECONDS.value
        )
        return count >= UNPROFILED_MIN_STEPS.value and elapsed_s >= least_s

    def closing_reason(
        self,
        steps_ns: Sequence[int],
        elapsed_s: float,
        events_per_step: float | None,
        left: TimeLeft = _PLENTY,
        epoch_steps: int | None = None,
    ) -> str | None:
        """Return why to close the window now.

        Args:
            steps_ns: Durations of the profiled steps so far.
            elapsed_s: Time since the profiler was started.
            events_per_step: Estimated number of profiler events per step; None if unknown.
            left: Time until the window has to be closed.
            epoch_steps: As for `is_timed`.

        Returns:
            `steps`, `seconds`, `events` or `stable`; None: do not close the window yet.
        """
        count = len(steps_ns)
        if self.steps is not None and count >= self.steps:
            return "steps"
        seconds = self.seconds if self.seconds is not None else MAX_SECONDS.value
        if elapsed_s >= seconds and count and not self._is_within_epoch(count, elapsed_s, seconds):
            return "seconds"
        if events_per_step is not None and (count + 1) * events_per_step > self.max_events and count:
            return "events"
        if self.steps is not None or self.seconds is not None:
            return None
        if count >= MAX_STEPS.value and elapsed_s >= MIN_SECONDS.value:
            return "steps"
        if count >= MIN_STEPS.value and elapsed_s >= MIN_SECONDS.value:
            if half_width(steps_ns) <= MAX_HALF_WIDTH.value and (epoch_steps is None or count >= epoch_steps):
                return "stable"
            if elapsed_s >= RESTLESS_SECONDS.value:
                return "seconds"
        is_over = 0 < count < MIN_STEPS.value and elapsed_s >= MIN_SECONDS.value and not left.has_step_before()
        return "seconds" if is_over or (count >= SLOW_STEPS.value and elapsed_s >= SLOW_SECONDS.value) else None

    def steps_to_check(self, count: int = 0, elapsed_s: float = 0.0) -> float:
        """Return the number of steps at which the window has to be closed at once; infinite if there is none yet.

        Args:
            count: The number of steps in the window so far.
            elapsed_s: Time since its start.
        """
        if self.steps is not None:
            return self.steps
        if self.epoch_steps is None or self.seconds is None or elapsed_s < self.seconds:
            return math.inf
        return (count // self.epoch_steps + 1) * self.epoch_steps

    def _is_within_epoch(self, count: int, elapsed_s: float, seconds: float) -> bool:
        """Whether an epoch is to end first."""
        if self.epoch_steps is None or elapsed_s >= WHOLE_EPOCHS_STRETCH.value * seconds:
            return False
        return count % self.epoch_steps != 0


def has_drained(steps: int, elapsed_s: float, left: TimeLeft = _PLENTY, writing_s: float = math.inf) -> bool:
    """Return whether the buffers are back to their normal fill level after the trial.

    Args:
        steps: Number of steps since the start of the pause.
        elapsed_s: Time since then.
        left: Time until the window has to be closed.
        writing_s: How long the trial was written.
    """
    if steps >= PAUSE_STEPS.value:
        return elapsed_s >= PAUSE_SECONDS.value
    if not left.has_step_before(*SHORTEST):
        return elapsed_s >= PAUSE_SECONDS.value or writing_s <= SHORT_PAUSE_SHARE.value * left.step_s
    return steps >= SLOW_PAUSE_STEPS.value and elapsed_s >= SLOW_PAUSE_SECONDS.value


def half_width(steps_ns: Sequence[int]) -> float:
    """Return the half width of the 95 % confidence interval of the mean step time, relative to the mean.

    It is infinite for fewer than 4 steps.
    """
    mean = mean_of(steps_ns)
    return math.inf if mean is None else mean.half_width
