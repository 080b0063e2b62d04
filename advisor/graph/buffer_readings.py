"""Counts how often the last buffer of the main pipeline was full or empty, and says so.

In: the recording.  Out: `BufferReadings`, and sentences for the verdict.

The buffer is read as a step begins. If it is full at every step, the pipeline refills it within a step, so it is faster than the
training; if it is empty, each step waits. In a loop whose steps are not visible it is read at arbitrary times, which shows the
same: the buffer of a pipeline that is faster fills up, and that of a slower one stays empty.

`MapAndBatch` counts a batch as soon as its first element is there (`EnsureOutputAllocated` in TensorFlow's
`map_and_batch_dataset_op.cc`), so its buffer of one batch counts as full while the training waits for that batch. Of this
buffer only empty readings count.
"""

from __future__ import annotations

import itertools

from advisor.host.calibration.analysis import BUFFER_SHARE, MIN_VERDICT_STEPS
from advisor.model.pipeline import BufferReadings, Pipeline
from advisor.model.recording import Recording, Window
from advisor.model.units import format_count
from advisor.model.window_readings import BufferLevels


def buffer_readings(main: Pipeline | None, recording: Recording | None) -> BufferReadings | None:
    """Return the readings of the main pipeline's last buffer: those without the profiler if there are enough of them.

    Args:
        main: The main pipeline; None if there is none.
        recording: What capture recorded; None for a profile without a recording.

    Returns:
        None if the buffer was not read, or too rarely to say anything, or if it holds incomplete batches and was never empty.
    """
    if recording is None:
        return None
    own = main.consumer if main is not None else None
    consumers = {own.id} if own is not None else {c.id for c in recording.consumers if c.is_main}
    levels = next((levels for levels in recording.buffers if levels.consumer_id in consumers), None)
    if levels is None:
        return None
    rows = _rows_of(levels, recording.window)
    if len(rows) < MIN_VERDICT_STEPS.value:
        return None
    wanted = _elements_per_step(levels) if levels.is_at_steps else 1
    holds_incomplete = levels.transformation.startswith("MapAndBatch")
    empty = sum(elements == 0 for elements, _ in rows)
    if holds_incomplete and not empty:
        return None
    return BufferReadings(
        levels.transformation,
        len(rows),
        full=0 if holds_incomplete else sum(elements >= capacity >= wanted for elements, capacity in rows),
        empty=empty,
        capacity=max(capacity for _, capacity in rows),
        is_at_steps=levels.is_at_steps,
    )


def is_always_full(buffer: BufferReadings | None) -> bool:
    """Return whether the buffer was full at practically all readings."""
    return buffer is not None and buffer.full >= BUFFER_SHARE.value * buffer.readings


def is_always_empty(buffer: BufferReadings | None) -> bool:
    """Return whether the buffer was empty at practically all readings."""
    return buffer is not None and buffer.empty >= BUFFER_SHARE.value * buffer.readings


def describe_readings(buffer: BufferReadings) -> str:
    """Return a clause such as `the prefetch buffer was full at 12 of 12 steps`."""
    name = "prefetch buffer" if buffer.transformation.startswith("Prefetch") else f"buffer of {buffer.transformation}"
    of = f"of {format_count(buffer.readings)} {'steps' if buffer.is_at_steps else 'readings'}"
    if is_always_full(buffer) or (buffer.full and not buffer.empty):
        return f"the {name} was full at {format_count(buffer.full)} {of}"
    if buffer.full:
        return f"the {name} was full at {format_count(buffer.full)} and empty at {format_count(buffer.empty)} {of}"
    return f"the {name} was empty at {format_count(buffer.empty)} {of}"


def readings_sentence(buffer: BufferReadings) -> str:
    """Return the same as a sentence that follows another one, with a space before it."""
    clause = describe_readings(buffer)
    return f" {clause[:1].upper()}{clause[1:]}."


def _rows_of(levels: BufferLevels, window: Window | None) -> list[tuple[int, int]]:
    """(elements, capacity) of the readings in the stretch without the profiler; of all if these are too few."""
    rows = list(zip(levels.time_ns, levels.elements, levels.capacity, strict=True))
    if window is not None:
        unprofiled = [row for row in rows if window.plain_start_ns <= row[0] <= window.plain_end_ns]
        rows = unprofiled if len(unprofiled) >= MIN_VERDICT_STEPS.value else rows
    return [(elements, capacity) for _, elements, capacity in rows]


def _elements_per_step(levels: BufferLevels) -> int:
    """The elements that a step takes, which a full buffer must be able to hold: several with `steps_per_execution`."""
    pairs = itertools.pairwise(zip(levels.steps, levels.elements_taken, strict=True))
    ratios = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs if b[0] > a[0] and b[1] > a[1]]
    return round(max(ratios, default=1.0))
