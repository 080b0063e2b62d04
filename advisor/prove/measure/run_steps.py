"""The steps of one run of a script, and what a step processes.

In: the `Recording` of a run.  Out: `RunSteps` of its main consumer; medians over runs.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.proof import MIN_RUN_STEPS, MIN_STEPS_OF_HALF
from advisor.model.calls import Site
from advisor.model.recorded_graph import RecordedGraph
from advisor.model.recording import Recording, StepSeries, Window

_ENDED_BY_ITSELF = frozenset({"finished", "exited"})
"""Kinds of `ScriptExit` without a failure or a stop from outside."""


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
    pauses: tuple[tuple[int, int], ...] = ()
    """Of each epoch but the first, in ns: its length with the pause at its end, and that pause, in which TensorFlow destroyed the
    iterator."""
    is_second_half: bool = False
    """Whether the script ended before a window, so that these are the steps of its second half."""


def steps_of(recording: Recording, is_with_gaps: bool = False, warmup: int | None = None) -> RunSteps | None:
    """Return the unprofiled steps of a run's main consumer: those of the window.

    A script that a change has made so fast that it ends before the window has the steps of its second half, if these are
    enough: the first half is its warm-up.

    Args:
        recording: The recording of the run.
        is_with_gaps: Whether the mean step time includes the time between epochs, in which no step is open: the script may make
            a dataset then. The window should hold whole epochs (`advisor.prove.measure.epoch_window`), so there is none without
            one.
        warmup: Steps of the warm-up that was asked for; None: it was left to capture.

    Returns:
        The steps; None if Python observed fewer than `MIN_RUN_STEPS`, or without a window fewer than `MIN_STEPS_OF_HALF`.
    """
    window, series = recording.window, main_series(recording)
    if series is None:
        return None
    first, last = (0, 0) if window is None else _range_of(window, series)
    is_second_half = last - first < MIN_RUN_STEPS.value
    if is_second_half:
        if is_with_gaps or recording.script_exit.kind not in _ENDED_BY_ITSELF:
            return None
        last = len(series.end_ns)
        first = max(last - last // 2, (warmup or 0) - series.first_step)
        if last - first < MIN_STEPS_OF_HALF.value:
            return None
    start, end = series.start_ns[first:last], series.end_ns[first:last]
    durations = [stop - begin for begin, stop in zip(start, end, strict=False)]
    waits = series.wait_ns[first : first + len(durations)]
    total = sum(durations)
    spent = total
    if is_with_gaps and window is not None:
        # A script that ends within the window does other things after its last step.
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
        pauses=_pauses_of(recording),
        is_second_half=is_second_half,
    )


def _pauses_of(recording: Recording) -> tuple[tuple[int, int], ...]:
    releases = next((consumer.releases for consumer in recording.consumers if consumer.is_main), ())
    return tuple((end - start, took) for (start, _), (end, took) in itertools.pairwise(releases))


def _range_of(window: Window, series: StepSeries) -> tuple[int, int]:
    """The recorded steps of the window: places of the first one and of the one after the last."""
    is_timed = window.plain_steps > 0
    first = max(0, window.warmup_steps - series.first_step)
    last = max(0, window.warmup_steps + (window.plain_steps if is_timed else window.steps) - series.first_step)
    return first, min(last, len(series.end_ns))


def main_series(recording: Recording) -> StepSeries | None:
    """Return the steps of the main consumer; None if Python observed none (a loop inside a tf.function)."""
    main = next((consumer for consumer in recording.consumers if consumer.is_main), None)
    return next((series for series in recording.steps if main and series.consumer_id == main.id), None)


def median_of(runs: Sequence[RunSteps], pick: Callable[[RunSteps], float | None]) -> float | None:
    """Return the median over the runs of the value that `pick` returns; None if it is None for any run."""
    values = [pick(run) for run in runs]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None


def as_much_as(before: RunSteps, after: RunSteps) -> RunSteps:
    """Return `after` with the time that as much data takes as a step of `before` processes."""
    if before.rows and after.rows:
        return replace(after, step_ns=after.step_ns * before.rows / after.rows)
    return replace(after, step_ns=after.step_ns * before.batches / after.batches)


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


def _data_of(recording: Recording) -> tuple[tuple[str, str], ...]:
    """Return the calls that make the dataset of the main consumer, nearest first."""
    graph = RecordedGraph(recording.calls)
    main = next((consumer for consumer in recording.consumers if consumer.is_main), None)
    consumed = graph.by_id.get(main.call_id or "") if main is not None else None
    return tuple((call.method, call.element_spec) for call in graph.upstream(consumed)) if consumed is not None else ()


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
