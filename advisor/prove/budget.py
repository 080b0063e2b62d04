"""The time limit of `advisor fix` and the deadlines of its phases.

In: `--budget` in seconds.  Out: `Budget`: deadlines on the monotonic clock, and whether a trial fits before them.

A phase still running at its deadline is stopped, so that the command exceeds its budget by at most a tenth. A phase that cannot
finish in time is not started.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from advisor.host.calibration.proof import ANALYSIS_SHARE, END_SHARE, LEAST_TRIAL_S, LONGEST_END_S, MIN_BUDGET_S
from advisor.model.errors import AdvisorError
from advisor.model.units import NS_PER_S, format_ns

Clock = Callable[[], float]


def check_budget(seconds: float) -> None:
    """Check that the budget is long enough to prove anything.

    Raises:
        AdvisorError: It is shorter than `MIN_BUDGET_S`.
    """
    if seconds < MIN_BUDGET_S.value:
        raise AdvisorError(
            f"--budget {format_ns(seconds * NS_PER_S)} is too short, so nothing was run: analysing a script and trying one "
            f"change take at least {format_ns(MIN_BUDGET_S.value * NS_PER_S)}. Allow more time, such as --budget 10min."
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The time limit of one run of `advisor fix`."""

    seconds: float
    began: float
    """Start of the run, as a time of `clock`."""
    clock: Clock = time.monotonic
    trials_s: float | None = None
    """Longest time of trials on the pipeline alone if the whole script is measured afterwards; None: what the budget leaves."""
    usual_s: float | None = None
    """Seconds after which the runs of the whole script only go on until they may decide; None: they go on until the end."""

    @property
    def analysis_end(self) -> float:
        """Deadline of the first run, on `clock`."""
        return self.began + ANALYSIS_SHARE.value * self.seconds

    @property
    def end(self) -> float:
        """Deadline of everything, on `clock`."""
        return self.began + self.seconds - min(LONGEST_END_S.value, END_SHARE.value * self.seconds)

    @property
    def usual_end(self) -> float:
        """The time, on `clock`, after which only the fewest runs of the whole script that may decide are made."""
        return self.end if self.usual_s is None else min(self.end, self.began + self.usual_s)

    @property
    def spent_s(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.began

    def pipeline_end(self, reserved_s: float, startup_s: float) -> float:
        """Return the time by which trials on the pipeline alone are expected to end; one that has begun may go on.

        One trial takes precedence over the reserve, since without it the whole script has nothing to prove. Time for another
        start is always kept to check the changed text, which is required before writing.

        Args:
            reserved_s: Seconds to keep for measuring the whole script.
            startup_s: Seconds from the script's start to its first element.
        """
        text_end = self.end - startup_s
        end = text_end - reserved_s
        return end if self._fits_trial(end, startup_s) else text_end

    def trials_end(self, pipeline_end: float, startup_s: float) -> float:
        """Return the time by which trials are to end, given the one by which they must: `trials_s` from now, if a trial fits.

        Args:
            pipeline_end: As `pipeline_end` returns it.
            startup_s: Seconds from the script's start to its first element.
        """
        if self.trials_s is None:
            return pipeline_end
        end = min(pipeline_end, self.clock() + self.trials_s)
        return end if self._fits_trial(end, startup_s) else pipeline_end

    def why_no_trial(self, end: float, startup_s: float) -> str:
        """Return a sentence if not even one trial fits before `end`, else an empty string."""
        if self._fits_trial(end, startup_s):
            return ""
        spent, need = self.spent_s, startup_s + LEAST_TRIAL_S.value
        least = in_budget_format(self.least_s(startup_s))
        return (
            f"Nothing was tried: the analysis took {format_ns(spent * NS_PER_S)} of the budget of "
            f"{format_ns(self.seconds * NS_PER_S)}, and trying one change takes at least {format_ns(need * NS_PER_S)}. This "
            f"script needs at least --budget {least}."
        )

    def least_s(self, startup_s: float) -> float:
        """Return the budget with which one trial would still begin now.

        Args:
            startup_s: Seconds from the script's start to its first element; the changed text starts once more.
        """
        return (self.spent_s + 2 * startup_s + LEAST_TRIAL_S.value) / (1 - END_SHARE.value)

    def _fits_trial(self, end: float, startup_s: float) -> bool:
        return self.clock() + startup_s + LEAST_TRIAL_S.value <= end


def in_budget_format(seconds: float) -> str:
    """Return a value of `--budget`: rounded up to ten seconds, or to a minute above two minutes."""
    if seconds <= 120:
        return f"{int(-(-seconds // 10) * 10)}s"
    return f"{int(-(-seconds // 60))}min"
