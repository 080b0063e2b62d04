"""When to open the window and when to close it: pure arithmetic on step times, without TensorFlow.

In: the times of a consumer's steps and the limits that the user set.  Out: `is_settled`, `closing_reason`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.intervals import mean_of

TRIAL_STEPS = 2
"""A trial window opens this early, so that a script that ends soon has been measured at all: the first step traces and
fills shuffle buffers, the second may trace again (Keras and variables made on the first call)."""
TRIAL_SECONDS = 1.0
PAUSE_STEPS = 10
PAUSE_SECONDS = 1.0
"""Between trial and window: what had been fetched ahead while the trial was written has been used up by then."""
SLOW_PAUSE_STEPS = 2
SLOW_PAUSE_SECONDS = 5.0
WARMUP_STEPS = 10
SETTLE_S = 2.0
"""AUTOTUNE starts from parallelism 1 or 2 and re-plans after 10, 20, 40... ms: in 2 s it has done so 7 times."""
SLOW_WARMUP_S = 10.0
"""With steps of seconds each, 3 steps and this long are warm-up enough."""
SLOW_WARMUP_STEPS = 3
MIN_STEPS = 20
PLAIN_SECONDS = 2.0
"""A shorter stretch sees too few of tf.data's buffer cycles and of a periodic cost (a garbage collection, a log line)."""
PLAIN_MAX_SECONDS = 5.0
"""Restless steps are timed no longer than this: many scripts that people try out end after half a minute."""
PLAIN_SLOW_SECONDS = 10.0
PLAIN_MIN_STEPS = 3
"""Steps of seconds each: three of them in this time must do."""
MIN_SECONDS = 1.0
"""The profiled stretch only has to say where the time goes; how much it is has been measured before. The shorter it is, the
less the profiler's events fill the script's memory: each first touch of a page costs time too."""
RESTLESS_SECONDS = 3.0
"""With enough steps it goes on no longer than this, however much they differ."""
MAX_SECONDS = 20.0
MAX_STEPS = 5_000
MAX_HALF_WIDTH = 0.05
"""The window closes when the mean step time is known to 5 % (95 % interval)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the user asked for; None: adaptive."""

    warmup: int | None = None
    steps: int | None = None
    seconds: float | None = None
    max_events: int = 2_000_000

    def is_settled(self, steps: int, elapsed_s: float) -> bool:
        """Warm-up is over after so many steps in so many seconds since the first one."""
        if self.warmup is not None:
            return steps >= self.warmup
        if steps >= WARMUP_STEPS:
            return elapsed_s >= SETTLE_S
        return steps >= SLOW_WARMUP_STEPS and elapsed_s >= SLOW_WARMUP_S

    def is_too_early(self, count: int, elapsed_s: float) -> bool:
        """Whether `is_timed` is surely False, without a look at every step."""
        if self.steps is not None and count >= self.steps:
            return False
        return elapsed_s < (PLAIN_SECONDS if self.seconds is None else min(PLAIN_SECONDS, self.seconds))

    def is_timed(self, steps_ns: Sequence[int], elapsed_s: float) -> bool:
        """Whether enough steps have been timed without the profiler, so that it can be started.

        Limits that the user set for the profiled stretch hold for this one too: it is never the longer one.
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
        """`steps`, `seconds`, `events` or `stable` when the profiled stretch is to be closed now; None: go on.

        `steps_ns`: durations of the steps in it so far.
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
    """Whether the buffers are as full as the loop itself keeps them again, so many steps and seconds after a pause."""
    if steps >= PAUSE_STEPS:
        return elapsed_s >= PAUSE_SECONDS
    return steps >= SLOW_PAUSE_STEPS and elapsed_s >= SLOW_PAUSE_SECONDS


def half_width(steps_ns: Sequence[int]) -> float:
    """Half width of the 95 % interval of the mean step time, as a share of the mean; inf below 4 steps."""
    mean = mean_of(steps_ns)
    return math.inf if mean is None else mean.half_width
