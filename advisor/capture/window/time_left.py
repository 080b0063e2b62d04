"""How much is left of the time until the first verdict: a minute, or a dozen steps if they take longer.

In: the age of the run, and the steps so far.  Out: `TimeLeft`. The window takes fewer steps if there is no time for more.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.host.calibration.window import (
    AFTER_WINDOW_FACTOR,
    AFTER_WINDOW_S,
    MIN_SECONDS,
    SHORT_SECONDS,
    VERDICT_SECONDS,
    VERDICT_STEPS,
)


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The time until the window has to be closed. Without arguments there is no limit."""

    seconds: float = math.inf
    """Negative if it is over."""
    step_s: float = 0.0
    """Median length of a step."""

    def has_step_before(self, *stretches: int) -> bool:
        """Return whether one more step leaves time for stretches of at least so many steps each."""
        return self.seconds >= self.step_s + sum(max(SHORT_SECONDS.value, steps * self.step_s) for steps in stretches)

    @property
    def is_over(self) -> bool:
        """Whether it is too late for another step. It never is for one of less than a second: the profile takes about one."""
        return self.step_s >= MIN_SECONDS.value and self.seconds < self.step_s


def time_left(age_s: float, steps_ns: Sequence[int], writing_s: float = 0.0) -> TimeLeft:
    """Return the time until the window has to be closed.

    Args:
        age_s: Seconds since the start of the run.
        steps_ns: Durations of its steps without the first one, which traces functions.
        writing_s: How long the trial's profile was written.
    """
    if not steps_ns:
        return TimeLeft()
    step_s = statistics.median(steps_ns) / 1e9
    return TimeLeft(seconds_left(age_s, step_s, writing_s), step_s)


def seconds_left(age_s: float, step_s: float, writing_s: float = 0.0) -> float:
    """Return the seconds until the window has to be closed; negative if the time is over.

    Args:
        age_s: Seconds since the start of the run.
        step_s: Length of a step; 0 if it is unknown.
        writing_s: How long the latest profile was written.
    """
    whole_s = max(VERDICT_SECONDS.value, VERDICT_STEPS.value * step_s)
    return whole_s - max(AFTER_WINDOW_S.value, AFTER_WINDOW_FACTOR.value * writing_s) - age_s
