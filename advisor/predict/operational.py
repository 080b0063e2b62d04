"""How much faster a step gets when iterators get cheaper: an operational model, good enough to rank by.

In: an `Analysis`, a pipeline of it, and by how much each changed iterator's cost shrinks.  Out: `Prediction`, or None where
nothing was measured to predict from.

The step is the unit: 1 = consumer's own time + wait, and the wait is split by blame. Two bounds on what follows:

* *Queued.* Blame below an asynchronous boundary shrinks in place: new step = consumer + rest of the wait. True where
  element times vary so much that the buffer is now full, now empty.
* *Overlapped.* Below an asynchronous boundary that keeps its consumer waiting, production takes the whole step, so it
  shrinks as a whole and then hides behind the consumer: new step = max(consumer, production). True for even times.

Blame above every asynchronous boundary is in the consumer's own thread and adds up in both. No step gets below what stays:
the ceiling, every stage's own work over its width, all CPU work over all cores, all Python work over one lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.capacity import core_use, python_share

UNCERTAINTY = 0.3
"""Share of the predicted gain by which the model itself may be off, in both directions. An assumption, wide on purpose,
until predictions have been laid beside enough measured gains."""

_NO_CHANGE: Mapping[str, float] = MappingProxyType({})


def predict_speedup(
    analysis: Analysis,
    pipeline: Pipeline,
    cost_factors: Mapping[str, float],
    work_factors: Mapping[str, float] = _NO_CHANGE,
) -> Prediction | None:
    """Speedup of the step if each iterator's wait-causing cost is multiplied by its factor.

    `cost_factors`: iterator id -> 0 (free) to 1 (unchanged); missing means 1. `work_factors`: the same for the work that
    still has to be done somewhere; missing means 1, because work run in parallel is not less work. A cache or a cheaper
    function sets both.
    """
    blamed = sum(it.blame_share for it in pipeline.iterators)
    if pipeline.span_ns <= 0 or pipeline.wait_ns <= 0 or blamed <= 0:
        return None
    cost = {it.id: _clamp(cost_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    work = {it.id: _clamp(work_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    queued, overlapped, likely = _steps(pipeline, cost, blamed)
    # Nobody knows how much of the cores other processes will leave: none of theirs, a half, all.
    slow, likely, fast = (
        max(step, _floor(analysis, pipeline, cost, work, others_keep))
        for step, others_keep in ((max(queued, overlapped), 1.0), (likely, 0.5), (min(queued, overlapped), 0.0))
    )
    ceiling = 1 / max(_shortest_step(analysis, pipeline), 1e-9)
    spread = _spread(pipeline)
    value = max(1.0, min(1 / likely, ceiling))
    low = (1 + (1 / slow - 1) * (1 - UNCERTAINTY)) / (1 + spread)
    high = (1 + (1 / fast - 1) * (1 + UNCERTAINTY)) * (1 + spread)
    return Prediction(value, low=min(value, max(1.0, low)), high=max(value, min(ceiling, high)))


def overlap_factors(pipeline: Pipeline, cost_factors: Mapping[str, float] = _NO_CHANGE) -> dict[str, float]:
    """Cost factors of a prefetch at the end: what runs in the consumer's thread then runs beside the consumer.

    `cost_factors`: those of other changes made together with it, on which these are laid.
    """
    behind = asynchronous(pipeline)
    wait = pipeline.wait_share
    front = {it.id: cost_factors.get(it.id, 1.0) for it in pipeline.iterators if it.id not in behind}
    own = wait * sum(it.blame_share * front[it.id] for it in pipeline.iterators if it.id in front)
    left = max(0.0, own - (1 - wait)) / own if own > 0 else 1.0
    return {**cost_factors, **{iterator_id: factor * left for iterator_id, factor in front.items()}}


def _steps(pipeline: Pipeline, cost: Mapping[str, float], blamed: float) -> tuple[float, float, float]:
    """New step time as a share of the old: queued, overlapped, and the likely mix of both."""
    wait = pipeline.wait_share
    behind = asynchronous(pipeline)
    front_before = front_after = back_before = back_after = 0.0
    for it in pipeline.iterators:
        share = wait * it.blame_share / blamed
        if it.id in behind:
            back_before += share
            back_after += share * cost[it.id]
        else:
            front_before += share
            front_after += share * cost[it.id]
    consumer = 1 - wait
    queued = consumer + front_after + back_after
    if back_before <= 0:
        return queued, queued, queued
    overlapped = max(consumer + front_after, back_after / back_before)
    return queued, overlapped, (front_before * queued + back_before * overlapped) / wait


def asynchronous(pipeline: Pipeline) -> frozenset[str]:
    """Ids of the iterators whose work is done on other threads than the consumer's: asynchronous ones and all below."""
    found: set[str] = set()
    for it in pipeline.iterators:  # parents before children
        if it.is_async or it.parent_id in found:
            found.add(it.id)
    return frozenset(found)


def _floor(
    analysis: Analysis, pipeline: Pipeline, cost: Mapping[str, float], work: Mapping[str, float], others_keep: float
) -> float:
    """The shortest new step that the work left over allows, as a share of the old step; at most 1."""
    span = pipeline.span_ns
    stages = [
        min(1.0, it.busy_ns / (width * span)) * min(cost[it.id], work[it.id])
        for it in pipeline.iterators
        if (width := _width(pipeline, it)) is not None
    ]
    use, cpu = core_use(analysis, pipeline), 0.0
    if use is not None:
        saved = sum(it.busy_ns * (1 - work[it.id]) for it in pipeline.iterators) / span
        # Busy time may hold waiting for the disk or for a core: no more CPU time is saved than was used.
        cpu = max(0.0, use.own - saved) / max(use.usable - others_keep * use.others, use.own, 1e-9)
    python_ns = sum(it.python_ns for it in pipeline.iterators)
    python_left = sum(it.python_ns * work[it.id] for it in pipeline.iterators) / python_ns if python_ns else 0.0
    python = python_share(analysis, pipeline) * python_left
    return min(1.0, max(_shortest_step(analysis, pipeline), cpu, python, *stages))


def _shortest_step(analysis: Analysis, pipeline: Pipeline) -> float:
    """The ceiling, as a share of the step now."""
    ceiling = analysis.verdict.max_speedup if pipeline.is_main else None
    return min(1.0, 1 / ceiling) if ceiling else 1 - pipeline.wait_share


def _width(pipeline: Pipeline, iterator: Iterator) -> int | None:
    """How many threads can do this iterator's work at once; None: unknown."""
    node: Iterator | None = iterator
    while node is not None:
        is_inside = node is iterator or "Interleave" in node.name  # an interleave's elements run on its threads
        if is_inside and ("Parallel" in node.name or node.name.startswith("MapAndBatch")):
            return node.parallelism if node.parallelism and node.parallelism > 0 else None
        node = pipeline.parent(node)
    return 1


def _spread(pipeline: Pipeline) -> float:
    """Half the 95 % interval of the median step over the median."""
    steps = pipeline.steps
    if steps is None or steps.median_ns <= 0:
        return 0.0
    return max(0.0, (steps.high_ns - steps.low_ns) / 2 / steps.median_ns)


def _clamp(factor: float) -> float:
    return min(1.0, max(0.0, factor))
