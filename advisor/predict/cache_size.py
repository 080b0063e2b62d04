"""What a cache would hold.

In: an `Analysis`, a pipeline and a call.  Out: elements per epoch and bytes, or None where they cannot be known.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call
from advisor.predict.structure import nested_calls, upstream_calls

_UNSTEADY = frozenset({"interleave", "flat_map", "window", "group_by_window", "from_generator", "repeat", "take_while"})
"""Methods whose elements come in bursts: one window says little of how many an input gives."""

MEMORY_SHARE = 0.8
"""Share of the free memory that changes may take together; the rest is left to the training's peaks and to estimates that are
too low."""
FRAME_BYTES = {"TextLineDataset": 1, "TFRecordDataset": 16}
"""Bytes of a record in its file beside its contents: the end of a line; length and two checksums
(tensorflow/core/lib/io/record_writer.h)."""
_STRING_BYTES = 24
"""What tf.data's model counts for each string beside its contents (`sizeof(tstring)`)."""
_FEW = 16
"""With fewer elements than this in the window, a ratio of counts is off by more than the buffers between hold."""


def cache_bytes(analysis: Analysis, pipeline: Pipeline, call: Call, counted: Call | None = None) -> int | None:
    """Bytes of all elements that one epoch takes out of `call`; None: their number or size is unknown.

    `counted`: a call with as many elements, where those of `call` itself are not those of one epoch.
    """
    elements = elements_per_epoch(analysis, pipeline, counted or call)
    size = element_bytes(pipeline, call)
    return None if elements is None or size is None else elements * size


def element_bytes(pipeline: Pipeline, call: Call) -> int | None:
    """Bytes of one element behind `call`: measured by tf.data's model, else from its element spec."""
    it = iterator_of(pipeline, call)
    if it is not None and it.element_bytes:
        return it.element_bytes
    if call.element_bytes:
        return call.element_bytes
    fused = _fused(pipeline, call)
    return fused[0].element_bytes // fused[1] if fused is not None and fused[0].element_bytes else None


def elements_per_epoch(analysis: Analysis, pipeline: Pipeline, call: Call) -> int | None:
    """Elements of one epoch behind `call`; None: unknown.

    Its cardinality; else that of what feeds it, scaled by how many elements of the one gave how many of the other in the
    window; else at most as many as finished epochs took; else as many as the files that are read have room for.
    """
    for each in _steadily_feeding(analysis, call):
        if each.cardinality is not None and each.cardinality >= 0:
            ratio = _elements(pipeline, call, each)
            return (
                each.cardinality if each.id == call.id else None if ratio is None else round(each.cardinality * ratio)
            )
    steps, seen = steps_per_epoch(analysis, pipeline), window_elements(pipeline, call)
    if not seen:
        return None
    if steps and pipeline.num_elements:
        return round(steps * seen / pipeline.num_elements)
    windows = _windows_per_epoch(analysis, pipeline, call)
    return None if windows is None else round(windows * seen)


def steps_per_epoch(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """At most so many steps the consumer took out of each epoch that it finished or left; None: none was, or unknown.

    All iterators but the last one are done with. Keras makes iterators for its own purposes, so it is asked for its epochs; where
    one step of its loop takes several elements, so many.
    """
    consumer, recording = pipeline.consumer, analysis.recording
    if consumer is None or recording is None:
        return None
    if consumer.kind.startswith("keras"):
        executed = analysis.keras.get("steps_per_execution")
        each = executed if isinstance(executed, int) and executed > 0 else 1
        return each * consumer.finished_steps / consumer.finished_epochs if consumer.finished_epochs else None
    if consumer.iterators < 2:
        return None
    steps = next((len(s.start_ns) for s in recording.steps if s.consumer_id == consumer.id), 0)
    return steps / (consumer.iterators - 1) if steps else None


def _steadily_feeding(analysis: Analysis, call: Call) -> list[Call]:
    """`call` and what feeds it, nearest first, as far as each element gives a steady number of elements."""
    found = []
    for each in upstream_calls(analysis, call):
        found.append(each)
        if each.method in _UNSTEADY or len(each.inputs) > 1:
            break
    return found


def _windows_per_epoch(analysis: Analysis, pipeline: Pipeline, call: Call) -> float | None:
    """How many times the records that were read in the window all files have, where they are the files of one place.

    The bytes of the files over those that a record takes in them; compressed ones tell nothing.
    """
    feeding = upstream_calls(analysis, call)
    inner = [nested for each in feeding for nested in (each, *nested_calls(analysis, each))]
    readers = [each for each in inner if each.method in FRAME_BYTES]
    sized = [each for each in inner if each.file_bytes]
    sized = [each for each in sized if each.made_by not in {other.id for other in sized}]
    if len(readers) != 1 or len(sized) != 1 or readers[0].arguments.get("compression_type"):
        return None
    source = iterator_of(pipeline, readers[0])
    if source is None or not source.element_bytes or not source.elements or source.elements < _FEW:
        return None
    record = max(1, source.element_bytes - _STRING_BYTES) + FRAME_BYTES[readers[0].method]
    return sized[0].file_bytes / record / source.elements if sized[0].file_bytes else None


def _elements(pipeline: Pipeline, call: Call, feeding: Call) -> float | None:
    """Elements behind `call` for each behind `feeding`, as the window saw it."""
    above, below = window_elements(pipeline, call), window_elements(pipeline, feeding)
    return above / below if above and below and below >= _FEW else None


def window_elements(pipeline: Pipeline, call: Call) -> int | None:
    """Elements that came out of `call` in the window; None: unknown."""
    it, fused = iterator_of(pipeline, call), _fused(pipeline, call)
    if it is not None:
        return it.elements
    return fused[0].elements * fused[1] if fused is not None and fused[0].elements else None


def _fused(pipeline: Pipeline, call: Call) -> tuple[Iterator, int] | None:
    """The iterator of a map and the batch behind it that were made one, and the size of its batches."""
    it = next((it for it in pipeline.iterators if any(each.id == call.id for each in it.calls)), None)
    size = it.calls[-1].arguments.get("batch_size") if it is not None and len(it.calls) == 2 else None
    return (it, size) if it is not None and isinstance(size, int) and size > 0 else None


def iterator_of(pipeline: Pipeline, call: Call) -> Iterator | None:
    """The executed iterator whose elements are those of `call`; None where a fusion or nothing stands for it."""
    for it in pipeline.iterators:
        if it.calls and it.calls[-1].id == call.id:
            return it
    return None
