"""Measures the script against the changed script in alternating fresh processes, without the profiler.

In: two `CaptureRequest`s that differ in their overlay (or script).
Out: `EndToEnd`: the ratio of step times with its interval, input wait and memory of both sides.

One turn is one run of each side, stopped after its window. A run that was made before, to check a text, may be one of the first
turn. The order changes from turn to turn, so that a machine that slows down favours neither side. A run counts as one
observation: steps within a run are not independent, runs are. There are 3 to 8 turns, depending on how clear the answer is
(`advisor.model.sequential_test`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.capture.launch import CHILD, capture
from advisor.capture.request import CaptureRequest, Progress, labelled
from advisor.host.calibration.proof import WORTHWHILE
from advisor.model.codec import decode
from advisor.model.errors import OutOfTime, ScriptFailed
from advisor.model.intervals import median_interval
from advisor.model.outcome import Interval
from advisor.model.paired_test import OUT_OF_TIME, PairedTest
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.sequential_test import MAX_PAIRS, decide, is_look, last_look, pairs_at_next_look
from advisor.model.termination import is_interrupt
from advisor.model.units import format_range
from advisor.prove.measure.run_steps import RunSteps, as_much_as, steps_of
from advisor.prove.trial.trial_result import BROKEN, REFUSED, SAME, judge
from advisor.sandbox.temporary import temporary_folder

OnProgress = Callable[[Progress], None]
CHECKED_CHILD = Path(__file__).parents[1] / "trial" / "runs" / "checked_child.py"
"""The program of a run with `calls_at`."""


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


def measure_end_to_end(
    before: CaptureRequest,
    after: CaptureRequest,
    on_progress: OnProgress,
    deadline: float | None = None,
    is_with_gaps: bool = False,
    names: tuple[str, str] = ("unchanged", "with the changes"),
    limit: float | None = None,
    may_give_up: bool = True,
    is_per_element: bool = False,
    early: Mapping[str, EarlyRun] | None = None,
    is_gain_only: bool = False,
    most_pairs: int = MAX_PAIRS,
    usual_end: float | None = None,
) -> EndToEnd:
    """Run both sides alternately and compare their step times, until the answer is clear.

    Args:
        before: How to run the unchanged script.
        after: How to run the changed script.
        on_progress: Called with progress messages.
        deadline: A time of `time.monotonic`; no turn starts that would probably end after it, and a run still going is stopped.
        is_with_gaps: As in `steps_of`.
        names: What progress messages call the two sides.
        limit: A ratio of step times, after to before: the runs end when it is clear on which side of it the true ratio is. None:
            they end when it is clear which version is faster, or that neither is by a worthwhile gain.
        may_give_up: As for `decide`.
        is_per_element: Whether a step of the changed script may take other numbers of elements: its step times are then those of
            as many elements (or batches, if that is all that is known) as a step of the unchanged script takes.
        is_gain_only: As for `decide`.
        most_pairs: As for `decide`.
        usual_end: A time of `time.monotonic`: once the test has looked and not decided, it only goes on if the next look is
            expected before it. None: it goes on until the deadline.
        early: `before`, `after` -> the run of that side which was made immediately before and is the one of the first turn.

    Raises:
        ScriptFailed: The script fails without the change.
        RunsInterrupted: Ctrl-C.
    """
    early = early or {}
    # Being close to a limit is no answer: no result within 5 % of it ends the runs early.
    slowdown, worthwhile = (1.0, WORTHWHILE.value) if limit is None else (limit, 1.0)
    sides = {"before": replace(before, deadline=deadline), "after": replace(after, deadline=deadline)}
    seen: dict[str, list[RunSteps]] = {"before": [], "after": []}
    began = time.monotonic() - sum(run.seconds for run in early.values())
    is_after_first = set(early) == {"after"}
    for turn in range(most_pairs):
        spent = time.monotonic() - began
        if deadline is not None and turn and began + spent * (turn + 1) / turn > deadline:
            return out_of_time(seen, turn, slowdown, most_pairs)
        if usual_end is not None and is_look(turn) and began + spent / turn * pairs_at_next_look(turn) > usual_end:
            return out_of_time(seen, turn, slowdown, most_pairs, "the usual time was used up")
        for name in ("before", "after") if (turn % 2 == 0) != is_after_first else ("after", "before"):
            if turn == 0 and name in early:
                seen[name].append(early[name].steps)
                continue
            label = f"{names[0] if name == 'before' else names[1]}, turn {turn + 1} of up to {most_pairs}"
            left_s = _countdown(seen, turn, time.monotonic() - began, deadline)
            try:
                steps = time_run(sides[name], labelled(on_progress, label, left_s), is_with_gaps)
            except OutOfTime:
                return out_of_time(seen, turn, slowdown, most_pairs)
            except KeyboardInterrupt as error:
                if not is_interrupt(error):
                    raise
                raise RunsInterrupted(_interrupted(seen, turn, slowdown, most_pairs)) from error
            except ScriptFailed as error:
                if name == "before":
                    error.runs = len(seen["before"]) + len(seen["after"]) + 1
                    raise
                return EndToEnd(BROKEN, None, *_tuples(seen), note=f"With the changes: {error}")
            if steps is None:
                too_short = _unfinished(seen, "The script ended before its steps could be timed.")
                return replace(too_short, is_run_too_short=True)
            seen[name].append(steps)
        if is_per_element:
            seen["after"][-1] = as_much_as(seen["before"][-1], seen["after"][-1])
        decision = decide(_ratios(seen, slowdown), worthwhile, may_give_up, is_gain_only, most_pairs)
        if decision is not None:
            judged = judged_runs(seen, _scaled(decision.speedup, 1 / slowdown))
            return replace(judged, ended_because=decision.reason, most_pairs=most_pairs)
    raise AssertionError("the last look always decides")


def time_run(request: CaptureRequest, on_progress: OnProgress, is_with_gaps: bool = False) -> RunSteps | None:
    """Run the script once without the profiler, in a temporary run folder; None if its window has too few steps.

    Args:
        request: How to run the script, and the window.
        on_progress: Called with progress messages.
        is_with_gaps: As in `steps_of`.
    """
    return steps_of(record_run(request, on_progress), is_with_gaps, request.warmup)


def record_run(request: CaptureRequest, on_progress: OnProgress) -> Recording:
    """Run the script once without the profiler, in a temporary run folder, and return its recording."""
    with temporary_run(request) as run_request:
        return record_run_in(run_request, on_progress)


def record_run_in(request: CaptureRequest, on_progress: OnProgress) -> Recording:
    """Run the script once without the profiler, and return its recording."""
    child = CHILD if request.calls_at is None else CHECKED_CHILD
    folder = capture(replace(request, is_profiled=False), on_progress, child=child)
    path = folder / RECORDING_NAME
    return decode(path.read_bytes(), Recording, str(path))


@contextmanager
def temporary_run(request: CaptureRequest) -> Iterator[CaptureRequest]:
    """Yield the request with a run folder that is removed after the block."""
    with temporary_folder("run") as folder:
        yield replace(request, out=folder / "run")


def judged_runs(seen: Mapping[str, Sequence[RunSteps]], speedup: Interval) -> EndToEnd:
    """Return the measurement with the verdict on this ratio.

    Args:
        seen: `before`, `after` -> the runs.
        speedup: The ratio of their step times.
    """
    verdict, note = judge(speedup)
    return EndToEnd(verdict, speedup, *_tuples(seen), note, how=_how_early(seen))


def _how_early(seen: Mapping[str, Sequence[RunSteps]]) -> str:
    """A sentence if the script ended before its window; empty if it did not."""
    early = [name for name in ("before", "after") if any(run.is_second_half for run in seen[name])]
    if not early:
        return ""
    version = {"before": "Without the changes, the script", "after": "With the changes, the script"}
    who = "The script" if len(early) == 2 else version[early[0]]
    return f"{who} ended before its usual window: its step times are those of the second half of its steps."


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(interval.value * factor, interval.low * factor, interval.high * factor)


def _unfinished(seen: Mapping[str, Sequence[RunSteps]], why: str) -> EndToEnd:
    return EndToEnd(REFUSED, None, *_tuples(seen), note=why)


def _ratios(seen: Mapping[str, Sequence[RunSteps]], slowdown: float) -> list[float]:
    """The ratios of the finished pairs, before to after."""
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


def _interrupted(seen: Mapping[str, Sequence[RunSteps]], done: int, slowdown: float, most_pairs: int) -> EndToEnd:
    """The result of the finished pairs after Ctrl-C."""
    return replace(_undecided(seen, done, slowdown, "interrupted", most_pairs), is_interrupted=True)


def _undecided(
    seen: Mapping[str, Sequence[RunSteps]], done: int, slowdown: float, why: str, most_pairs: int
) -> EndToEnd:
    """The result of the finished pairs: of these, the test has looked at some and not decided."""
    reached = last_look(_ratios(seen, slowdown)[:done])
    speedup = None if reached is None else _scaled(reached, 1 / slowdown)
    result = "The whole script was not measured"
    if speedup is not None:
        result = f"The whole script is undecided ({format_range(speedup.value, speedup.low, speedup.high)})"
    note = f"{result}: {why} after {done} of up to {most_pairs} pairs of runs."
    return replace(_unfinished(seen, note), speedup=speedup, most_pairs=most_pairs)


def _tuples(seen: Mapping[str, Sequence[RunSteps]]) -> tuple[tuple[RunSteps, ...], tuple[RunSteps, ...]]:
    return tuple(seen["before"]), tuple(seen["after"])


def _countdown(
    seen: Mapping[str, Sequence[RunSteps]], turn: int, spent_s: float, deadline: float | None
) -> Callable[[], float | None]:
    """Return a clock that tells the seconds until the next look, if runs take as long as those so far.

    Args:
        seen: The runs so far; without any, their length is unknown.
        turn: The number of complete pairs.
        spent_s: Seconds that these runs took.
        deadline: As for `measure_end_to_end`; whatever the estimate, no more than the time until then is left.
    """
    done = sum(map(len, seen.values()))
    if not done:
        return lambda: None
    ends = time.monotonic() + spent_s / done * (2 * pairs_at_next_look(turn) - done)
    ends = ends if deadline is None else min(ends, deadline)
    return lambda: max(0.0, ends - time.monotonic())
