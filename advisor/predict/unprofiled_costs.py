"""A pipeline with the costs of its iterators as they are when nobody profiles and no thread has to wait for a core.

In: a `Pipeline` as profiled.  Out: the same one, with `busy_ns` and `blame_share` freed of what the profiler and full cores add.

The profiler writes an event for every element that an iterator hands on. That doubles the cost of one that does little else
(`shuffle`, a file's reader), and it is what such an iterator is then found to cost. tf.data's own model times them all the time,
for a few nanoseconds, so in the stretch without the profiler it says what they cost by themselves. Of functions it counts only
the ops, and nothing of what other threads do; there the profile is what there is.

Where functions keep all cores busy, a thread that only passes an element on loses its core now and then, for as long as a
function takes. That shows in few calls, each a hundred times as long as the others, and is no work of the iterator.

So iterators that only pass elements on, in the thread that asks for them, get the model's cost or that of their usual calls where
that is less. Their step is as long as it was measured: what they do not cost is added to the functions of the same pipeline, as
those share it now.
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
"""Types each of whose calls does much the same. (A reader's does not: one call in a hundred reads the next block.)"""


def unprofiled(pipeline: Pipeline) -> Pipeline:
    """The pipeline as it is without the profiler; itself where nothing was measured without, or no function is in it."""
    steps = pipeline.steps
    working = [it for it in pipeline.iterators if it.function_ns > 0 and it.blame_share > 0]
    if steps is None or steps.mean_ns <= 0 or pipeline.num_elements <= 0 or not working:
        return pipeline
    kept = {it.id: _kept_share(it, pipeline.plain_over_profiled) for it in pipeline.iterators}
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


def _kept_share(it: Iterator, plain_over_profiled: float) -> float:
    """What is left of an iterator's cost without the profiler, 0 to 1. Its profiled cost is taken to shrink with the step."""
    if it.function_ns > 0 or it.is_async or it.busy_ns <= 0 or not it.elements:
        return 1.0
    usual = it.usual_ns / it.busy_ns if it.usual_ns is not None and base_type(it.name) in PASSING_ON else 1.0
    model = 1.0
    if it.unprofiled_ns is not None:
        model = it.unprofiled_ns / (it.busy_ns / it.elements * plain_over_profiled)
    return min(1.0, usual, model)
