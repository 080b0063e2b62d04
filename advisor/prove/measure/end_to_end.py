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
from dataclasses import replace
from pathlib import Path

from advisor.capture.launch import CHILD, capture
from advisor.capture.request import CaptureRequest, Progress, labelled
from advisor.host.calibration.proof import NEARLY_CLEAR_S, WORTHWHILE
from advisor.model.codec import decode
from advisor.model.errors import OutOfTime, ScriptFailed
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.sequential_test import MAX_PAIRS, decide, is_look, is_nearly_clear, pairs_at_next_look
from advisor.model.termination import is_interrupt
from advisor.prove.measure.end_to_end_result import (
    EarlyRun,
    EndToEnd,
    RunsInterrupted,
    as_tuples,
    interrupted_runs,
    judged_runs,
    out_of_time,
    ratios_of,
    scaled,
    unfinished,
)
from advisor.prove.measure.run_steps import RunSteps, as_much_as, steps_of
from advisor.prove.trial.trial_result import BROKEN
from advisor.sandbox.temporary import temporary_folder

OnProgress = Callable[[Progress], None]
CHECKED_CHILD = Path(__file__).parents[1] / "trial" / "runs" / "checked_child.py"
"""The program of a run with `calls_at`."""


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
            expected before it, or `NEARLY_CLEAR_S` later if that will probably decide. None: it goes on until the deadline.
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
        if usual_end is not None and is_look(turn):
            more_s = NEARLY_CLEAR_S.value if is_nearly_clear(ratios_of(seen, slowdown)) else 0.0
            if began + spent / turn * pairs_at_next_look(turn) > usual_end + more_s:
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
                raise RunsInterrupted(interrupted_runs(seen, turn, slowdown, most_pairs)) from error
            except ScriptFailed as error:
                if name == "before":
                    error.runs = len(seen["before"]) + len(seen["after"]) + 1
                    raise
                return EndToEnd(BROKEN, None, *as_tuples(seen), note=f"With the changes: {error}")
            if steps is None:
                too_short = unfinished(seen, "The script ended before its steps could be timed.")
                return replace(too_short, is_run_too_short=True)
            seen[name].append(steps)
        if is_per_element:
            seen["after"][-1] = as_much_as(seen["before"][-1], seen["after"][-1])
        decision = decide(ratios_of(seen, slowdown), worthwhile, may_give_up, is_gain_only, most_pairs)
        if decision is not None:
            judged = judged_runs(seen, scaled(decision.speedup, 1 / slowdown))
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
