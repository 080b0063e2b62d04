"""What alternating runs of the whole script have shown: their verdict, or how far they came.

In: the runs of both sides, and the interval of their ratio.  Out: `EndToEnd`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.proof import WORTHWHILE
from advisor.model.intervals import median_interval
from advisor.model.outcome import Interval
from advisor.model.paired_test import OUT_OF_TIME, PairedTest
from advisor.model.sequential_test import MAX_PAIRS, last_look
from advisor.model.units import format_range
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.trial.trial_result import REFUSED, SAME, judge


@dataclass(frozen=True, slots=True)
class EarlyRun:
    """A run that was made before its measurement, because it also had to check the text."""

    steps: RunSteps
    seconds: float
    """Wall time."""


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The measurement of both sides, run by run."""

    verdict: str
    """`faster`, `same`, `slower`, `broken` (the changed script fails), `refused` (nothing could be measured)."""
    speedup: Interval | None = None
    """Step time before / after: median of the ratios of the turns."""
    before: tuple[RunSteps, ...] = ()
    after: tuple[RunSteps, ...] = ()
    note: str = ""
    is_other_text: bool = False
    """`broken` because the changed text does not make the proved calls."""
    is_out_of_time: bool = False
    """`refused` because of the budget: with more time the script could be measured. `speedup` is then that of the latest look
    that was reached, which decides nothing, and `note` says after how many pairs the time was used up."""
    missing_s: float = 0.0
    """Seconds that the budget lacked for the fewest runs, if that is why nothing was measured."""
    is_run_too_short: bool = False
    """`refused` because the script ended before its steps could be timed."""
    is_interrupted: bool = False
    """`refused` because of Ctrl-C: `speedup` and `note` are those of the pairs until then, as with `is_out_of_time`."""
    is_script_failing: bool = False
    """`refused` because the unchanged script, which had run before, failed in one of the runs."""
    epochs: int = 0
    """Whole epochs in each window, if the step times include the time between epochs; else 0."""
    most_pairs: int = MAX_PAIRS
    """The number of pairs at which the test would have ended."""

    ended_because: str = ""
    """Why the runs ended, one of `advisor.model.paired_test.REASONS`; empty without an interval."""
    is_live: bool = False
    """Whether live processes took turns: each of `before` and `after` is a turn then, not a run."""
    starts: int = 0
    """How often the script was started, if live processes took turns or were tried; 0: once per run."""
    how: str = ""
    """How the pairs were measured, in one sentence, if live processes were to take turns or the script ended before its window;
    else empty."""

    @property
    def test(self) -> PairedTest | None:
        """How the test behind `speedup` has ended; None if there is none."""
        if self.speedup is None or not self.ended_because:
            return None
        ratios = [before.step_ns / after.step_ns for before, after in zip(self.before, self.after, strict=False)]
        if self.is_live:  # turns of one process are not independent, and each pair of processes has its own test
            return PairedTest(self.ended_because, len(ratios), MAX_PAIRS * self.starts // 2)
        exact = median_interval(ratios)
        median = None if exact is None else (exact.value, exact.low, exact.high)
        return PairedTest(self.ended_because, len(ratios), self.most_pairs, median)

    @property
    def runs(self) -> int:
        """Number of runs of the script."""
        return self.starts or len(self.before) + len(self.after)

    @property
    def is_undecided(self) -> bool:
        """Whether the median is a worthwhile gain, but the runs vary by more than it.

        So is a test for which the time was used up before it had decided.
        """
        if self.is_out_of_time or self.is_interrupted:
            return self.speedup is not None
        return (
            self.verdict == SAME
            and self.speedup is not None
            and self.speedup.low <= 1
            and self.speedup.value >= WORTHWHILE.value
        )


class RunsInterrupted(KeyboardInterrupt):
    """Ctrl-C during the runs; `result` holds what the finished pairs have shown."""

    def __init__(self, result: EndToEnd) -> None:
        super().__init__()
        self.result = result


def judged_runs(seen: Mapping[str, Sequence[RunSteps]], speedup: Interval) -> EndToEnd:
    """Return the measurement with the verdict on this ratio.

    Args:
        seen: `before`, `after` -> the runs.
        speedup: The ratio of their step times.
    """
    verdict, note = judge(speedup)
    return EndToEnd(verdict, speedup, *as_tuples(seen), note, how=_how_early(seen))


def _how_early(seen: Mapping[str, Sequence[RunSteps]]) -> str:
    """A sentence if the script ended before its window; empty if it did not."""
    early = [name for name in ("before", "after") if any(run.is_second_half for run in seen[name])]
    if not early:
        return ""
    version = {"before": "Without the changes, the script", "after": "With the changes, the script"}
    who = "The script" if len(early) == 2 else version[early[0]]
    return f"{who} ended before its usual window: its step times are those of the second half of its steps."


def scaled(interval: Interval, factor: float) -> Interval:
    """Return the interval of a ratio that is so many times as large."""
    return Interval(interval.value * factor, interval.low * factor, interval.high * factor)


def unfinished(seen: Mapping[str, Sequence[RunSteps]], why: str) -> EndToEnd:
    """Return the runs without a verdict; `why` is a sentence."""
    return EndToEnd(REFUSED, None, *as_tuples(seen), note=why)


def ratios_of(seen: Mapping[str, Sequence[RunSteps]], slowdown: float) -> list[float]:
    """Return the ratios of the finished pairs, before to after, times the limit of `measure_end_to_end`."""
    return [slowdown * b.step_ns / a.step_ns for b, a in zip(seen["before"], seen["after"], strict=False)]


def out_of_time(
    seen: Mapping[str, Sequence[RunSteps]],
    done: int,
    slowdown: float = 1.0,
    most_pairs: int = MAX_PAIRS,
    why: str = "the budget was used up",
) -> EndToEnd:
    """Return the result of the finished pairs when the time is used up.

    Args:
        seen: As for `judged_runs`.
        done: The number of finished pairs.
        slowdown: The limit of `measure_end_to_end`; 1.0: there is none.
        most_pairs: The number of pairs at which the test would have ended.
        why: Which time was used up, as a clause.
    """
    result = _undecided(seen, done, slowdown, why, most_pairs)
    ended_because = "" if result.speedup is None else OUT_OF_TIME
    note = f"{result.note} Allow more time."
    return replace(result, note=note, is_out_of_time=True, ended_because=ended_because)


def interrupted_runs(seen: Mapping[str, Sequence[RunSteps]], done: int, slowdown: float, most_pairs: int) -> EndToEnd:
    """Return the result of the finished pairs after Ctrl-C.

    Args:
        seen: As for `judged_runs`.
        done: As for `out_of_time`.
        slowdown: As for `out_of_time`.
        most_pairs: As for `out_of_time`.
    """
    return replace(_undecided(seen, done, slowdown, "interrupted", most_pairs), is_interrupted=True)


def _undecided(
    seen: Mapping[str, Sequence[RunSteps]], done: int, slowdown: float, why: str, most_pairs: int
) -> EndToEnd:
    """The result of the finished pairs: of these, the test has looked at some and not decided."""
    reached = last_look(ratios_of(seen, slowdown)[:done])
    speedup = None if reached is None else scaled(reached, 1 / slowdown)
    result = "The whole script was not measured"
    if speedup is not None:
        result = f"The whole script is undecided ({format_range(speedup.value, speedup.low, speedup.high)})"
    note = f"{result}: {why} after {done} of up to {most_pairs} pairs of runs."
    return replace(unfinished(seen, note), speedup=speedup, most_pairs=most_pairs)


def as_tuples(seen: Mapping[str, Sequence[RunSteps]]) -> tuple[tuple[RunSteps, ...], tuple[RunSteps, ...]]:
    """Return the runs of both sides, that of the unchanged script first."""
    return tuple(seen["before"]), tuple(seen["after"])
