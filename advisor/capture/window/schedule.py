"""Decides when to open and close the window, from step times only and without TensorFlow.

In: the durations of a consumer's steps and the limits set by the user.  Out: `is_settled`, `closing_reason`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.intervals import mean_of

TRIAL_STEPS = 2
"""Number of steps before the trial, which is early so that scripts that end soon are measured too. The first step traces and
fills shuffle buffers, the second may trace again (Keras, and variables made in the first call)."""
TRIAL_SECONDS = 1.0
PAUSE_STEPS = 10
PAUSE_SECONDS = 1.0
"""Pause between trial and window, in which the elements prefetched while the trial was written are consumed."""
SLOW_PAUSE_STEPS = 2
SLOW_PAUSE_SECONDS = 5.0
"""The same for steps that take seconds."""
WARMUP_STEPS = 10
SETTLE_S = 2.0
"""AUTOTUNE starts with parallelism 1 or 2 and optimizes after 10, 20, 40... ms, i.e. 7 times in 2 s."""
SLOW_WARMUP_S = 10.0
"""For steps that take seconds, 3 steps and this time are a sufficient warm-up."""
SLOW_WARMUP_STEPS = 3
MIN_STEPS = 20
PLAIN_SECONDS = 2.0
"""Minimum time without the profiler. A shorter one covers too few cycles of tf.data's buffers and of periodic costs (garbage
collection, log output)."""
PLAIN_MAX_SECONDS = 5.0
"""Maximum time without the profiler for unstable step times, because many scripts end after half a minute."""
PLAIN_SLOW_SECONDS = 10.0
PLAIN_MIN_STEPS = 3
"""For steps that take seconds, this many steps in that time are sufficient."""
MIN_SECONDS = 1.0
"""Minimum time with the profiler. The profile only has to show how the time is distributed; the step time has been measured
before. A short profile keeps the memory for profiler events small, whose first use takes time, too."""
RESTLESS_SECONDS = 3.0
"""Maximum time with the profiler for unstable step times, once there are enough steps."""
MAX_SECONDS = 20.0
MAX_STEPS = 5_000
MAX_HALF_WIDTH = 0.05
"""Step times are stable if the half width of the 95 % confidence interval of their mean is at most 5 % of the mean."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits set by the user; None: adaptive."""

    warmup: int | None = None
    """Open the window after this many steps."""
    steps: int | None = None
    """Close the window after this many steps."""
    seconds: float | None = None
    """Close the window after this many seconds."""
    max_events: int = 2_000_000
    """Close the window before the profile has more than approximately this many events."""

    def is_settled(self, steps: int, elapsed_s: float) -> bool:
        """Return whether the warm-up is over.

        Args:
            steps: Number of steps so far.
            elapsed_s: Time since the start of the first step.
        """
        if self.warmup is not None:
            return steps >= self.warmup
        if steps >= WARMUP_STEPS:
            return elapsed_s >= SETTLE_S
        return steps >= SLOW_WARMUP_STEPS and elapsed_s >= SLOW_WARMUP_S

    def is_too_early(self, count: int, elapsed_s: float) -> bool:
        """Return True if `is_timed` is False whatever the step times are. Cheaper than `is_timed`.

        Args:
            count: Number of steps in the stretch without the profiler.
            elapsed_s: Time since its start.
        """
        if self.steps is not None and count >= self.steps:
            return False
        return elapsed_s < (PLAIN_SECONDS if self.seconds is None else min(PLAIN_SECONDS, self.seconds))

    def is_timed(self, steps_ns: Sequence[int], elapsed_s: float) -> bool:
        """Return whether enough steps have been timed without the profiler, so that it can be started.

        The user's limits for the profiled stretch apply to this one too, so it is never the longer one of the two.

        Args:
            steps_ns: Durations of the steps in the stretch without the profiler.
            elapsed_s: Time since its start.
        """
        count = len(steps_ns)
        if self.steps is not None and count >= self.steps:
            return True
        if self.seconds is not None and elapsed_s >= self.seconds:
            return True
        if count >= MIN_STEPS:
            is_stable = elapsed_s >= PLAIN_SECONDS and half_width(steps_ns) <= MAX_HALF_WIDTH
            return is_stable or elapsed_s >= PLAIN_MAX_SECONDS
        return count >= PLAIN_MIN_STEPS and elapsed_s >= PLAIN_SLOW_SECONDS

    def closing_reason(self, steps_ns: Sequence[int], elapsed_s: float, events_per_step: float | None) -> str | None:
        """Return why to close the window now.

        Args:
            steps_ns: Durations of the profiled steps so far.
            elapsed_s: Time since the profiler was started.
            events_per_step: Estimated number of profiler events per step; None if unknown.

        Returns:
            `steps`, `seconds`, `events` or `stable`; None: do not close the window yet.
        """
        count = len(steps_ns)
        if self.steps is not None and count >= self.steps:
            return "steps"
        if elapsed_s >= (self.seconds if self.seconds is not None else MAX_SECONDS) and count:
            return "seconds"
        if events_per_step is not None and (count + 1) * events_per_step > self.max_events and count:
            return "events"
        if self.steps is not None or self.seconds is not None:
            return None
        if count >= MAX_STEPS and elapsed_s >= MIN_SECONDS:
            return "steps"
        if count >= MIN_STEPS and elapsed_s >= MIN_SECONDS:
            if half_width(steps_ns) <= MAX_HALF_WIDTH:
                return "stable"
            if elapsed_s >= RESTLESS_SECONDS:
                return "seconds"
        return None


def has_drained(steps: int, elapsed_s: float) -> bool:
    """Return whether the buffers are back to their normal fill level after the trial.

    Args:
        steps: Number of steps since the start of the pause.
        elapsed_s: Time since then.
    """
    if steps >= PAUSE_STEPS:
        return elapsed_s >= PAUSE_SECONDS
    return steps >= SLOW_PAUSE_STEPS and elapsed_s >= SLOW_PAUSE_SECONDS


def half_width(steps_ns: Sequence[int]) -> float:
    """Return the half width of the 95 % confidence interval of the mean step time, relative to the mean.

    It is infinite for fewer than 4 steps.
    """
    mean = mean_of(steps_ns)
    return math.inf if mean is None else mean.half_width
