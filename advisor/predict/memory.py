"""What a cache would hold.

In: an `Analysis`, a pipeline and a call.  Out: elements per epoch and bytes, or None where they cannot be known.
"""

from __future__ import annotations

from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import Call
from advisor.predict.structure import upstream_calls

_UNSTEADY = frozenset({"interleave", "flat_map", "window", "group_by_window", "from_generator", "repeat", "take_while"})
"""Methods whose elements come in bursts: one window says little of how many an input gives."""

MEMORY_SHARE = 0.8
"""Share of the free memory that changes may take together; the rest is left to the training's peaks and to estimates that are
too low."""
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
    fused = next((it for it in pipeline.iterators if any(each.id == call.id for each in it.calls)), None)
    size = fused.calls[-1].arguments.get("batch_size") if fused is not None and len(fused.calls) == 2 else None
    if fused is not None and fused.element_bytes and isinstance(size, int) and size > 0:
        return fused.element_bytes // size  # a map before the batch that it is fused with
    return None


def elements_per_epoch(analysis: Analysis, pipeline: Pipeline, call: Call) -> int | None:
    """Elements of one epoch behind `call`; None: unknown.

    Its cardinality; else that of what feeds it, scaled by how many elements of the one gave how many of the other in the
    window; else at most as many as finished epochs took.
    """
    for each in _steadily_feeding(analysis, call):
        if each.cardinality is not None and each.cardinality >= 0:
            ratio = _elements(pipeline, call, each)
            return (
                each.cardinality if each.id == call.id else None if ratio is None else round(each.cardinality * ratio)
            )
    steps, it = steps_per_epoch(analysis, pipeline), iterator_of(pipeline, call)
    if not steps or it is None or not it.elements or not pipeline.num_elements:
        return None
    return round(steps * it.elements / pipeline.num_elements)


def steps_per_epoch(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """At most so many steps the consumer took out of each epoch that it finished or left; None: none was, or unknown.

    All iterators but the last one are done with. Keras makes iterators for its own purposes, so theirs are not counted.
    """
    consumer, recording = pipeline.consumer, analysis.recording
    if consumer is None or recording is None or consumer.iterators < 2 or consumer.kind.startswith("keras"):
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


def _elements(pipeline: Pipeline, call: Call, feeding: Call) -> float | None:
    """Elements behind `call` for each behind `feeding`, as the window saw it."""
    above, below = iterator_of(pipeline, call), iterator_of(pipeline, feeding)
    if above is None or below is None or not above.elements or not below.elements or below.elements < _FEW:
        return None
    return above.elements / below.elements


def iterator_of(pipeline: Pipeline, call: Call) -> Iterator | None:
    """The executed iterator whose elements are those of `call`; None where a fusion or nothing stands for it."""
    for it in pipeline.iterators:
        if it.calls and it.calls[-1].id == call.id:
            return it
    return None
