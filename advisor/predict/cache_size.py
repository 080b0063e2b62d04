"""Estimates the size of a cache.

In: an `Analysis`, a pipeline and a call.  Out: elements per epoch and bytes, or None if they are unknown.
"""

from __future__ import annotations

from advisor.host.calibration.prediction import FEW_ELEMENTS
from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.observed import Observations
from advisor.predict.structure import nested_calls, upstream_calls

_UNSTEADY = frozenset({"interleave", "flat_map", "window", "group_by_window", "from_generator", "repeat", "take_while"})
"""Methods whose elements come in bursts, so that one window does not show how many elements an input element produces."""

_SAME_BYTES = frozenset({"batch", "unbatch", "rebatch", "shuffle", "prefetch", "with_options"})
"""Methods whose elements of an epoch together are as large as those of their input."""

FRAME_BYTES = {"TextLineDataset": 1, "TFRecordDataset": 16}
"""Overhead of a record in its file in bytes: a newline; a length and two checksums
(tensorflow/core/lib/io/record_writer.h)."""
_STRING_BYTES = 24
"""Overhead in bytes of each string in tf.data's model (`sizeof(tstring)`)."""


def cache_bytes(analysis: Analysis, pipeline: Pipeline, call: Call, counted: Call | None = None) -> int | None:
    """Estimate the size of all elements of one epoch.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        call: The call whose elements are cached.
        counted: A call with the same number of elements per epoch, if `call` itself produces several epochs.

    Returns:
        The size in bytes, or None if the number or the size of the elements is unknown.
    """
    elements = elements_per_epoch(analysis, pipeline, counted or call)
    size = element_bytes(pipeline, call)
    if elements is not None and size is not None:
        return elements * size
    is_one_pass = counted is None or counted.id == call.id
    if call.method in _SAME_BYTES and len(call.inputs) == 1 and is_one_pass:
        grouped = next((other for other in analysis.calls if other.id == call.inputs[0]), None)
        return None if grouped is None else cache_bytes(analysis, pipeline, grouped)
    return None


def element_bytes(pipeline: Pipeline, call: Call) -> int | None:
    """Return the size in bytes of one element of `call`, from tf.data's model or its element spec; None if unknown."""
    it = iterator_of(pipeline, call)
    if it is not None and it.element_bytes:
        return it.element_bytes
    if call.element_bytes:
        return call.element_bytes
    fused = _fused(pipeline, call)
    return fused[0].element_bytes // fused[1] if fused is not None and fused[0].element_bytes else None


def elements_per_epoch(analysis: Analysis, pipeline: Pipeline, call: Call) -> int | None:
    """Estimate the number of elements of `call` per epoch; None if it is unknown.

    In this order: its cardinality, or the number of elements of a generator that yields equally many in every pass; the same of
    an upstream call, scaled by the ratio of their elements in the window; the number of elements in finished epochs (an upper
    bound); the number of records that fit into the files that are read.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, which knows the numbers of elements in the window.
        call: One of its calls.
    """
    for other in _steadily_feeding(analysis, call):
        count = _count_of(analysis, other)
        if count is not None:
            ratio = 1.0 if other.id == call.id else _elements(pipeline, call, other)
            return None if ratio is None else round(count * ratio)
    steps, seen = steps_per_epoch(analysis, pipeline), window_elements(pipeline, call)
    if not seen:
        return None
    if steps and pipeline.num_elements:
        return round(steps * seen / pipeline.num_elements)
    windows = _windows_per_epoch(analysis, pipeline, call)
    return None if windows is None else round(windows * seen)


def steps_per_epoch(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Return the mean number of steps in the epochs that the consumer finished or left, an upper bound; None if unknown.

    All iterators except the last one count as epochs, and the last one if the script has ended. Keras creates additional
    iterators, so its own count of epochs is used; a step of its loop that takes several elements counts as several steps.
    """
    consumer, recording = pipeline.consumer, analysis.recording
    if consumer is None or recording is None:
        return None
    if consumer.kind.startswith("keras"):
        executed = analysis.keras.get("steps_per_execution")
        per_call = executed if isinstance(executed, int) and executed > 0 else 1
        return per_call * consumer.finished_steps / consumer.finished_epochs if consumer.finished_epochs else None
    has_ended = recording.script_exit.kind == "finished" and not recording.goes_on
    epochs = consumer.iterators if has_ended else consumer.iterators - 1
    if epochs < 1:
        return None
    steps = next((s.first_step + len(s.start_ns) for s in recording.steps if s.consumer_id == consumer.id), 0)
    return steps / epochs if steps else None


def _steadily_feeding(analysis: Analysis, call: Call) -> list[Call]:
    """`call` and its upstream calls, nearest first, as long as each element produces a steady number of elements."""
    steady = []
    for other in upstream_calls(analysis, call):
        steady.append(other)
        if other.method in _UNSTEADY or len(other.inputs) > 1:
            break
    return steady


def _count_of(analysis: Analysis, call: Call) -> int | None:
    """Elements of one pass over a call, as TensorFlow knows or as the recorder counted; None if unknown."""
    if call.cardinality is not None and call.cardinality >= 0:
        return call.cardinality
    if call.method != "from_generator" or analysis.recording is None:
        return None
    passes = Observations(analysis.recording).passes_of(call)
    return None if passes is None else passes.elements


def _windows_per_epoch(analysis: Analysis, pipeline: Pipeline, call: Call) -> float | None:
    """Number of records in all files, relative to the records read in the window; None if unknown or compressed.

    It is the size of the files over the size of a record. The files must be those of a single reader.
    """
    feeding = upstream_calls(analysis, call)
    inner = [nested for other in feeding for nested in (other, *nested_calls(analysis, other))]
    readers = [other for other in inner if other.method in FRAME_BYTES]
    sized = [other for other in inner if other.file_bytes]
    sized_ids = {other.id for other in sized}
    sized = [other for other in sized if other.made_by not in sized_ids]
    if len(readers) != 1 or len(sized) != 1 or readers[0].arguments.get("compression_type"):
        return None
    source = iterator_of(pipeline, readers[0])
    if source is None or not source.element_bytes or not source.elements or source.elements < FEW_ELEMENTS.value:
        return None
    record = max(1, source.element_bytes - _STRING_BYTES) + FRAME_BYTES[readers[0].method]
    return sized[0].file_bytes / record / source.elements if sized[0].file_bytes else None


def _elements(pipeline: Pipeline, call: Call, feeding: Call) -> float | None:
    """Elements of `call` per element of `feeding` in the window."""
    above, below = window_elements(pipeline, call), window_elements(pipeline, feeding)
    return above / below if above and below and below >= FEW_ELEMENTS.value else None


def window_elements(pipeline: Pipeline, call: Call) -> int | None:
    """Return the number of elements that `call` produced in the window; None if unknown."""
    it, fused = iterator_of(pipeline, call), _fused(pipeline, call)
    if it is not None:
        return it.elements
    return fused[0].elements * fused[1] if fused is not None and fused[0].elements else None


def _fused(pipeline: Pipeline, call: Call) -> tuple[Iterator, int] | None:
    """The iterator of a map fused with the following batch, and the batch size."""
    it = next((it for it in pipeline.iterators if any(other.id == call.id for other in it.calls)), None)
    size = it.calls[-1].arguments.get("batch_size") if it is not None and len(it.calls) == 2 else None
    return (it, size) if it is not None and isinstance(size, int) and size > 0 else None


def iterator_of(pipeline: Pipeline, call: Call) -> Iterator | None:
    """Return the iterator that produces the elements of `call`; None if there is none, or if a later call is fused with it."""
    for it in pipeline.iterators:
        if it.calls and it.calls[-1].id == call.id:
            return it
    return None
