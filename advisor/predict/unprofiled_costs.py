"""Removes the overhead of the profiler and of busy cores from the costs of iterators.

In: a `Pipeline` as profiled.  Out: the same pipeline with corrected `busy_ns` and `blame_share`.

The profiler writes an event for every element that an iterator emits. This doubles the cost of iterators that do little else
(`shuffle`, a file reader). tf.data's own model measures iterators at all times for a few nanoseconds, so its values from the
unprofiled stretch contain no such overhead. The model counts only the ops of functions, and no work in other threads; for these
the profile is used.

If functions keep all cores busy, a thread that only passes elements on occasionally loses its core for the duration of a
function. This affects few calls, which then take a hundred times longer, and is not work of the iterator.

Iterators that only pass elements on in their caller's thread therefore get the cost in the model or the cost of their typical
calls, if that is lower. The step time is unchanged: the difference is added to the functions of the same pipeline in proportion.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.catalog import BATCHES, SHUFFLES, base_type
from advisor.model.pipeline import Iterator, Pipeline

PASSING_ON = (
    SHUFFLES
    | BATCHES
    | {"MemoryCache", "MemoryCacheImpl", "FiniteTake", "FiniteSkip", "FiniteRepeat", "ForeverRepeat", "Shard", "Zip"}
)
"""Types whose calls all do similar work. (Readers are not included: one call in a hundred reads the next block.)"""


def unprofiled(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with corrected costs; unchanged without unprofiled measurements or without functions."""
    steps = pipeline.steps
    working = [it for it in pipeline.iterators if it.function_ns > 0 and it.blame_share > 0]
    if steps is None or steps.mean_ns <= 0 or pipeline.num_elements <= 0 or not working:
        return pipeline
    kept = {it.id: _kept_share(it, pipeline.unprofiled_ratio) for it in pipeline.iterators}
    if all(share == 1 for share in kept.values()):
        return pipeline
    freed_blame = sum(it.blame_share * (1 - kept[it.id]) for it in pipeline.iterators)
    freed_ns = sum(it.busy_ns * (1 - kept[it.id]) for it in pipeline.iterators)
    blamed = sum(it.blame_share for it in working)
    busy_ns = sum(it.busy_ns for it in working)

    def changed(it: Iterator) -> Iterator:
        if it not in working:
            return replace(it, busy_ns=round(it.busy_ns * kept[it.id]), blame_share=it.blame_share * kept[it.id])
        return replace(
            it,
            busy_ns=round(it.busy_ns * (1 + freed_ns / busy_ns)) if busy_ns else 0,
            blame_share=it.blame_share * (1 + freed_blame / blamed),
        )

    return replace(pipeline, iterators=tuple(changed(it) for it in pipeline.iterators))


def _kept_share(it: Iterator, unprofiled_ratio: float) -> float:
    """Share of an iterator's cost that remains without the profiler, 0 to 1; the profiled cost is scaled with the step."""
    if it.function_ns > 0 or it.is_async or it.busy_ns <= 0 or not it.elements:
        return 1.0
    usual = it.usual_ns / it.busy_ns if it.usual_ns is not None and base_type(it.name) in PASSING_ON else 1.0
    model = 1.0
    if it.unprofiled_ns is not None:
        model = it.unprofiled_ns / (it.busy_ns / it.elements * unprofiled_ratio)
    return min(1.0, usual, model)
