"""The time that `advisor fix` may take, and by when each of its phases ends.

In: `--budget` in seconds.  Out: `Budget`: instants of the monotonic clock, and what fits before them.

A phase that is still running at its instant is stopped, so that the command takes at most a tenth more than its budget; nothing
that cannot fit is begun.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from advisor.model.errors import AdvisorError
from advisor.model.units import NS_PER_S, format_ns

MIN_BUDGET_S = 30.0
"""A shorter budget is refused. TensorFlow's start, the warm-up, the two measurements of `analyze` and their evaluation take 15 to
25 s on the machines where this was measured."""
LEAST_TRIAL_S = 15.0
"""A trial of a fix is not begun with less time left: two warm-ups of 2.5 s, six pairs of turns of 0.6 s with the waits between
them, and a comparison of the elements."""
_ANALYSIS_SHARE = 0.9
"""Share of the budget by which the first run must have been measured: what it recorded still has to be analysed."""
_END_SHARE, _LONGEST_END_S = 0.08, 5.0
"""Time kept for stopping the script and writing the reports, as a share of the budget and in seconds."""

Clock = Callable[[], float]


def check_budget(seconds: float) -> None:
    """Raise AdvisorError for a budget in which nothing can be proved."""
    if seconds < MIN_BUDGET_S:
        raise AdvisorError(
            f"--budget {format_ns(seconds * NS_PER_S)} is too short: analysing a script and trying one change take at least "
            f"{format_ns(MIN_BUDGET_S * NS_PER_S)}, so nothing was run; give more time, such as --budget 10min."
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """One run of `advisor fix`."""

    seconds: float
    began: float
    """Instant of `clock`."""
    clock: Clock = time.monotonic

    @property
    def analysis_end(self) -> float:
        """When the first run is stopped."""
        return self.began + _ANALYSIS_SHARE * self.seconds

    @property
    def end(self) -> float:
        """When whatever still runs is stopped."""
        return self.began + self.seconds - min(_LONGEST_END_S, _END_SHARE * self.seconds)

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return self.clock() - self.began

    def pipeline_end(self, reserved_s: float, startup_s: float) -> float:
        """When trials on the pipeline alone end, so that the whole script keeps `reserved_s`.

        Without one trial there is nothing for the whole script to prove, so the trial goes first. `startup_s`: from the script's
        start to its first element. One more such start is kept for running the changed text up to its first element: without it
        nothing may be written.
        """
        text_end = self.end - startup_s
        end = text_end - reserved_s
        return end if self._fits_trial(end, startup_s) else text_end

    def why_no_trial(self, end: float, startup_s: float) -> str:
        """One sentence if not even one trial fits before `end`; empty if one does."""
        if self._fits_trial(end, startup_s):
            return ""
        spent, need = self.spent_s, startup_s + LEAST_TRIAL_S
        least = (spent + need + startup_s) / (1 - _END_SHARE)  # the changed text starts once more
        return (
            f"Nothing was tried: the analysis took {format_ns(spent * NS_PER_S)} of the budget of "
            f"{format_ns(self.seconds * NS_PER_S)}, and trying one change takes {format_ns(need * NS_PER_S)} or more; this "
            f"script needs at least --budget {_rounded(least)}."
        )

    def _fits_trial(self, end: float, startup_s: float) -> bool:
        return self.clock() + startup_s + LEAST_TRIAL_S <= end


def _rounded(seconds: float) -> str:
    """Up to the next ten seconds, or the next minute from two minutes on, as `--budget` takes it."""
    if seconds <= 120:
        return f"{int(-(-seconds // 10) * 10)}s"
    return f"{int(-(-seconds // 60))}min"
