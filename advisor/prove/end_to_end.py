"""Measures the script against the changed script in alternating fresh processes, without the profiler.

In: two `CaptureRequest`s that differ in their overlay (or script).
Out: `EndToEnd`: the ratio of step times with its interval, input wait and memory of both sides.

One turn is one run of each side, stopped after its window. A run that was made before, to check a text, may be one of the first
turn. The order changes from turn to turn, so that a machine that slows down favours neither side. A run counts as one
observation: steps within a run are not independent, runs are. There are 3 to 8 turns, depending on how clear the answer is
(`advisor.model.sequential_test`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from advisor.capture.launch import CHILD, capture
from advisor.capture.request import CaptureRequest, Progress
from advisor.host.calibration.proof import MIN_RUN_STEPS, WORTHWHILE
from advisor.model.calls import Site
from advisor.model.codec import decode
from advisor.model.errors import OutOfTime, ScriptFailed
from advisor.model.intervals import median_interval
from advisor.model.outcome import Interval
from advisor.model.paired_test import OUT_OF_TIME, PairedTest
from advisor.model.recording import Recording, StepSeries
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.sequential_test import MAX_PAIRS, decide, last_look, pairs_at_next_look
from advisor.model.units import format_range
from advisor.prove.trial.trial_result import BROKEN, REFUSED, SAME, judge
from advisor.sandbox.temporary import temporary_folder

OnProgress = Callable[[Progress], None]
CHECKED_CHILD = Path(__file__).parent / "trial" / "checked_child.py"
"""The program of a run with `calls_at`."""


@dataclass(frozen=True, slots=True)
class LoopSteps:
    """The steps of a loop that the window did not follow, such as that of the validation."""

    kind: str
    """As in `Consumer`."""
    number: int
    """Its place among the other consumers of its kind, in the order in which they first read a dataset, from 0."""
    site: Site | None
    step_ns: float
    """Mean step time in ns."""


@dataclass(frozen=True, slots=True)
class RunSteps:
    """The steps of one run's window."""

    step_ns: float
    """Mean step time in ns; a median would not include a wait in every tenth step. Over whole epochs it includes the time between
    them."""
    wait_share: float | None
    """Share of the step time spent in `next`, 0 to 1; None if Python cannot observe that (Keras' loops)."""
    count: int
    peak_rss_bytes: int | None
    datasets: int = 0
    """Number of datasets that the main consumer has read one after the other; 0 if unknown."""
    rows: int | None = None
    """Elements per step: the batch size times Keras' `steps_per_execution`; None if unknown."""
    batches: int = 1
    """Batches per step: Keras' `steps_per_execution`."""
    losses: tuple[tuple[int, float], ...] = ()
    """As in `Recording`; NaN if a loss is not finite."""
    loss_source: str = "keras"
    """As in `Recording`."""
    data: tuple[tuple[str, str], ...] = ()
    """(method, element spec) of the calls that make the main consumer's dataset, last one first."""
    other_loops: tuple[LoopSteps, ...] = ()
    """The other consumers with enough steps since the beginning of the window."""


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
    epochs: int = 0
    """Whole epochs in each window, if the step times include the time between epochs; else 0."""

    ended_because: str = ""
    """Why the runs ended, one of `advisor.model.paired_test.REASONS`; empty without an interval."""

    @property
    def test(self) -> PairedTest | None:
        """How the test behind `speedup` has ended; None if there is none."""
        if self.speedup is None or not self.ended_because:
            return None
        ratios = [before.step_ns / after.step_ns for before, after in zip(self.before, self.after, strict=False)]
        exact = median_interval(ratios)
        median = None if exact is None else (exact.value, exact.low, exact.high)
        return PairedTest(self.ended_because, len(ratios), MAX_PAIRS, median)

    @property
    def runs(self) -> int:
        """Number of runs of the script."""
        return len(self.before) + len(self.after)

    @property
    def is_undecided(self) -> bool:
        """Whether the median is a worthwhile gain, but the runs vary by more than it.

        So is a test for which the time was used up before it had decided.
        """
        if self.is_out_of_time:
            return self.speedup is not None
        return (
            self.verdict == SAME
            and self.speedup is not None
            and self.speedup.low <= 1
            and self.speedup.value >= WORTHWHILE.value
        )


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
        early: `before`, `after` -> the run of that side which was made immediately before and is the one of the first turn.

    Raises:
        ScriptFailed: The script fails without the change.
    """
    early = early or {}
    # Being close to a limit is no answer: no result within 5 % of it ends the runs early.
    slowdown, worthwhile = (1.0, WORTHWHILE.value) if limit is None else (limit, 1.0)
    sides = {"before": replace(before, deadline=deadline), "after": replace(after, deadline=deadline)}
    seen: dict[str, list[RunSteps]] = {"before": [], "after": []}
    began = time.monotonic() - sum(run.seconds for run in early.values())
    is_after_first = set(early) == {"after"}
    for turn in range(MAX_PAIRS):
        spent = time.monotonic() - began
        if deadline is not None and turn and began + spent * (turn + 1) / turn > deadline:
            return _out_of_time(seen, turn, slowdown)
        for name in ("before", "after") if (turn % 2 == 0) != is_after_first else ("after", "before"):
            if turn == 0 and name in early:
                seen[name].append(early[name].steps)
                continue
            label = f"{names[0] if name == 'before' else names[1]}, turn {turn + 1} of up to {MAX_PAIRS}"
            left_s = _countdown(seen, turn, time.monotonic() - began, deadline)
            try:
                steps = time_run(sides[name], _labelled(on_progress, label, left_s), is_with_gaps)
            except OutOfTime:
                return _out_of_time(seen, turn, slowdown)
            except ScriptFailed as error:
                if name == "before":
                    raise
                return EndToEnd(BROKEN, None, *_tuples(seen), note=f"With the changes: {error}")
            if steps is None:
                return _unfinished(seen, "The script ended before its steps could be timed.")
            seen[name].append(steps)
        if is_per_element:
            seen["after"][-1] = _as_much_as(seen["before"][-1], seen["after"][-1])
        decision = decide(_ratios(seen, slowdown), worthwhile, may_give_up, is_gain_only)
        if decision is not None:
            return replace(_judged(seen, _scaled(decision.speedup, 1 / slowdown)), ended_because=decision.reason)
    raise AssertionError("the last look always decides")


def time_run(request: CaptureRequest, on_progress: OnProgress, is_with_gaps: bool = False) -> RunSteps | None:
    """Run the script once without the profiler, in a temporary run folder; None if its window has too few steps."""
    return steps_of(record_run(request, on_progress), is_with_gaps)


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


def steps_of(recording: Recording, is_with_gaps: bool = False) -> RunSteps | None:
    """Return the unprofiled steps of a run's main consumer; None if Python observed fewer than `MIN_STEPS`.

    Args:
        recording: The recording of the run.
        is_with_gaps: Whether the mean step time includes the time between epochs, in which no step is open: the script may make
            a dataset then. The window should hold whole epochs (`advisor.prove.epoch_window`).
    """
    window = recording.window
    series = main_series(recording)
    if window is None or series is None:
        return None
    is_plain = window.plain_steps > 0
    first = max(0, window.warmup_steps - series.first_step)
    last = max(0, window.warmup_steps + (window.plain_steps if is_plain else window.steps) - series.first_step)
    start, end = series.start_ns[first:last], series.end_ns[first:last]
    if len(end) < MIN_RUN_STEPS.value:
        return None
    durations = [stop - begin for begin, stop in zip(start, end, strict=False)]
    waits = series.wait_ns[first : first + len(durations)]
    total = sum(durations)
    spent = total
    if is_with_gaps:  # a script that ends within the window does other things after its last step
        spent = window.end_ns - window.start_ns if window.closed_by == "steps" else end[-1] - start[0]
    return RunSteps(
        step_ns=spent / len(durations),
        wait_share=min(1.0, sum(waits) / total) if waits and total else None,
        count=len(durations),
        peak_rss_bytes=recording.usage.peak_rss_bytes if recording.usage else None,
        datasets=next((consumer.datasets for consumer in recording.consumers if consumer.is_main), 0),
        rows=_rows_of(recording),
        batches=_batches_of(recording),
        losses=tuple((batches, math.nan if loss is None else loss) for batches, loss in recording.losses),
        loss_source=recording.loss_source,
        data=_data_of(recording),
        other_loops=tuple(_other_loops(recording, start[0])),
    )


def _other_loops(recording: Recording, since_ns: int) -> Iterator[LoopSteps]:
    """Yield the loops beside that of the main consumer, with the mean of their steps that began after an instant."""
    series = {series.consumer_id: series for series in recording.steps}
    numbers: dict[str, int] = {}
    for consumer in recording.consumers:
        if consumer.is_main:
            continue
        number = numbers[consumer.kind] = numbers.get(consumer.kind, -1) + 1
        own = series.get(consumer.id)
        pairs = zip(own.start_ns, own.end_ns, strict=False) if own is not None else ()
        durations = [end - start for start, end in pairs if start >= since_ns]
        if len(durations) >= MIN_RUN_STEPS.value:
            yield LoopSteps(consumer.kind, number, consumer.site, sum(durations) / len(durations))


def _as_much_as(before: RunSteps, after: RunSteps) -> RunSteps:
    """A run whose step time is that of as much data as a step of another run takes."""
    if before.rows and after.rows:
        return replace(after, step_ns=after.step_ns * before.rows / after.rows)
    return replace(after, step_ns=after.step_ns * before.batches / after.batches)


def _data_of(recording: Recording) -> tuple[tuple[str, str], ...]:
    """Return the calls that make the dataset of the main consumer, nearest first."""
    calls = {call.id: call for call in recording.calls}
    main = next((consumer for consumer in recording.consumers if consumer.is_main), None)
    waiting, found = [main.call_id if main is not None else None], dict[str, tuple[str, str]]()
    while waiting:
        call = calls.get(waiting.pop(0) or "")
        if call is not None and call.id not in found:
            found[call.id] = call.method, call.element_spec
            waiting += call.inputs
    return tuple(found.values())


def _rows_of(recording: Recording) -> int | None:
    """Return the elements per step of the main consumer, as `advisor.predict.rows_per_step` does for an analysis."""
    calls = {call.id: call for call in recording.calls}
    main = next((consumer for consumer in recording.consumers if consumer.is_main), None)
    call = calls.get(main.call_id or "") if main is not None else None
    for _ in calls:
        if call is None or call.method in ("batch", "padded_batch", "ragged_batch"):
            break
        call = calls.get(call.inputs[0]) if call.inputs else None
    size = call.arguments.get("batch_size") if call is not None else None
    return size * _batches_of(recording) if isinstance(size, int) else None


def _batches_of(recording: Recording) -> int:
    per_call = recording.keras.get("steps_per_execution")
    return per_call if isinstance(per_call, int) and per_call > 0 else 1


def main_series(recording: Recording) -> StepSeries | None:
    """Return the steps of the main consumer; None if Python observed none (a loop inside a tf.function)."""
    main = next((consumer for consumer in recording.consumers if consumer.is_main), None)
    return next((series for series in recording.steps if main and series.consumer_id == main.id), None)


def _judged(seen: dict[str, list[RunSteps]], speedup: Interval) -> EndToEnd:
    verdict, note = judge(speedup)
    return EndToEnd(verdict, speedup, *_tuples(seen), note)


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(interval.value * factor, interval.low * factor, interval.high * factor)


def _unfinished(seen: dict[str, list[RunSteps]], why: str) -> EndToEnd:
    return EndToEnd(REFUSED, None, *_tuples(seen), note=why)


def _ratios(seen: dict[str, list[RunSteps]], slowdown: float) -> list[float]:
    """The ratios of the finished pairs, before to after."""
    return [slowdown * b.step_ns / a.step_ns for b, a in zip(seen["before"], seen["after"], strict=False)]


def _out_of_time(seen: dict[str, list[RunSteps]], done: int, slowdown: float) -> EndToEnd:
    """The result of the finished pairs: of these, the test has looked at some and not decided."""
    reached = last_look(_ratios(seen, slowdown)[:done])
    speedup = None if reached is None else _scaled(reached, 1 / slowdown)
    result = "The whole script was not measured"
    if speedup is not None:
        result = f"The whole script is undecided ({format_range(speedup.value, speedup.low, speedup.high)})"
    note = f"{result}: the budget was used up after {done} of up to {MAX_PAIRS} pairs of runs. Allow more time."
    ended_because = "" if speedup is None else OUT_OF_TIME
    return replace(_unfinished(seen, note), speedup=speedup, is_out_of_time=True, ended_because=ended_because)


def _tuples(seen: dict[str, list[RunSteps]]) -> tuple[tuple[RunSteps, ...], tuple[RunSteps, ...]]:
    return tuple(seen["before"]), tuple(seen["after"])


def _labelled(on_progress: OnProgress, label: str, left_s: Callable[[], float | None]) -> OnProgress:
    return lambda progress: on_progress(msgspec.structs.replace(progress, text=label, left_s=left_s()))


def _countdown(
    seen: dict[str, list[RunSteps]], turn: int, spent_s: float, deadline: float | None
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


def median_of(runs: Sequence[RunSteps], pick: Callable[[RunSteps], float | None]) -> float | None:
    """Return the median over the runs of the value that `pick` returns; None if it is None for any run."""
    values = [pick(run) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
