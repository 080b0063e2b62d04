"""How much faster a step gets when iterators get cheaper: an operational model.

In: an `Analysis`, a pipeline of it, and by how much each changed iterator's cost shrinks.  Out: `Prediction`, or None where
nothing was measured to predict from.

The step is the unit: 1 = consumer's own time + wait, and the wait is split by blame. Two bounds on what follows:

* *Queued.* Blame below an asynchronous boundary shrinks in place: new step = consumer + rest of the wait. True where
  element times vary so much that the buffer is now full, now empty.
* *Overlapped.* Below an asynchronous boundary that keeps its consumer waiting, production takes the whole step, so it
  shrinks as a whole and then hides behind the consumer: new step = max(consumer, production). True for even times.

Blame above every asynchronous boundary is in the consumer's own thread and adds up in both. No step gets below what stays:
the ceiling, and every `Limit` of the changed pipeline (stages, all cores, Python's one lock, the disk). Where pipeline and
consumer want more cores than there are, work that goes away also gives those that remain their cores back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.model.catalog import FILE_SOURCES, base_type
from advisor.model.finding import Effect, Prediction
from advisor.model.outlook import Limit
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.cache_size import steps_per_epoch
from advisor.predict.demand import UNCHANGED, Demands, demands
from advisor.predict.structure import consumed_call
from advisor.predict.unprofiled_costs import unprofiled

UNCERTAINTY = 0.3
"""Share of the predicted gain by which the model itself may be off, in both directions. An assumption, wide on purpose,
until predictions have been laid beside enough measured gains."""

CONTENTION_FACTOR = (1.0, 0.5, 0.35)
"""What it costs to copy and pass on elements that are there already, over what it costs beside functions that keep the cores,
their caches and the memory busy: worst, likely, best. [Measured: six caches behind nearly all of a pipeline's work left 0.50 to
0.68 of what the profiles said of the rest; benchmarks/predictions.py.]"""

BESIDE_INPUT = 2.0
"""A consumer that computes on the same cores as the pipeline may be so many times faster without it: processor caches, memory and
wake-ups are shared too, and nobody has measured them here. An assumption, for the upper end of the range alone."""


def predict_speedup(
    analysis: Analysis,
    pipeline: Pipeline,
    cost_factors: Mapping[str, float],
    work_factors: Mapping[str, float] = UNCHANGED,
    added_ns: float = 0.0,
) -> Prediction | None:
    """Speedup of the step if each iterator's wait-causing cost is multiplied by its factor.

    `cost_factors`: iterator id -> 0 (free) to 1 (unchanged); missing means 1. `work_factors`: the same for the work that
    still has to be done somewhere; missing means 1, because work run in parallel is not less work. A cache or a cheaper
    function sets both. `added_ns`: what each step costs in addition, in the thread that takes the elements.
    """
    pipeline = unprofiled(pipeline)
    found = demands(analysis, pipeline)
    return None if found is None else predict_from(found, analysis, pipeline, cost_factors, work_factors, added_ns)


def predict_from(
    found: Demands,
    analysis: Analysis,
    pipeline: Pipeline,
    cost_factors: Mapping[str, float],
    work_factors: Mapping[str, float] = UNCHANGED,
    added_ns: float = 0.0,
) -> Prediction | None:
    """`predict_speedup` for many changes of the same pipeline, whose demands are `found`."""
    blamed = sum(it.blame_share for it in pipeline.iterators)
    if pipeline.wait_ns <= 0 or blamed <= 0:
        return None
    cost = {it.id: _clamp(cost_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    work = {it.id: _clamp(work_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    relief = _relief(found, work)
    own = 1 - pipeline.wait_share
    rests = [_rest(pipeline, cost, work, factor) for factor in _uncrowded(found, work)]
    # At best the consumer is as much faster as it can be without what is taken away beside it.
    beside = _beside_input(analysis, found, work)
    steps = (
        max(_steps(pipeline, rests[0][0], blamed, relief, own)[:2]),
        _steps(pipeline, rests[1][0], blamed, relief, own)[2],
        min(_steps(pipeline, rests[2][0], blamed, relief, own * beside)[:2]),
    )
    shortest = _shortest_step(analysis, pipeline, found, added_ns)
    start = _epoch_start(analysis, pipeline, found)
    # Nobody knows how much of the cores other processes will leave: none of theirs, a half, all.
    slow, likely, fast = (
        min(
            1.0,
            (max(step, shortest * part, _limit(found.limits(*rest, keep), part) / found.step_ns) + start) / (1 + start),
        )
        for step, rest, keep, part in zip(steps, rests, (1.0, 0.5, 0.0), (1.0, 1.0, beside), strict=True)
    )
    spread = _spread(pipeline)
    value = max(1.0, 1 / likely)
    low = (1 + (1 / slow - 1) * (1 - UNCERTAINTY)) / (1 + spread)
    high = min((1 + (1 / fast - 1) * (1 + UNCERTAINTY)) * (1 + spread), 1 / max(shortest * beside, 1e-9))
    effects = tuple(Effect(i, cost[i], work[i]) for i in cost if cost[i] < 1 or work[i] < 1)
    return Prediction(value, min(value, max(1.0, low)), max(value, high), effects)


def combined_factors(effects: Iterable[Effect]) -> tuple[dict[str, float], dict[str, float]]:
    """(cost factors, work factors) of several changes together.

    Work that two changes save is saved by both; of two changes that only spread the same work over threads, the one that
    spreads it wider counts.
    """
    work: dict[str, float] = {}
    spread: dict[str, float] = {}
    for effect in effects:
        work[effect.iterator_id] = work.get(effect.iterator_id, 1.0) * effect.work
        alone = min(1.0, effect.cost / effect.work) if effect.work > 0 else 0.0
        spread[effect.iterator_id] = min(spread.get(effect.iterator_id, 1.0), alone)
    return {i: work[i] * spread[i] for i in work}, work


def overlap_factors(pipeline: Pipeline, cost_factors: Mapping[str, float] = UNCHANGED) -> dict[str, float]:
    """Cost factors of a prefetch at the end: what runs in the consumer's thread then runs beside the consumer.

    `cost_factors`: those of other changes made together with it, on which these are laid.
    """
    behind = asynchronous(pipeline)
    wait = pipeline.wait_share
    front = {it.id: cost_factors.get(it.id, 1.0) for it in pipeline.iterators if it.id not in behind}
    own = wait * sum(it.blame_share * front[it.id] for it in pipeline.iterators if it.id in front)
    left = max(0.0, own - (1 - wait)) / own if own > 0 else 1.0
    return {**cost_factors, **{iterator_id: factor * left for iterator_id, factor in front.items()}}


def asynchronous(pipeline: Pipeline) -> frozenset[str]:
    """Ids of the iterators whose work is done on other threads than the consumer's: asynchronous ones and all below."""
    found: set[str] = set()
    for it in pipeline.iterators:  # parents before children
        if it.is_async or it.parent_id in found:
            found.add(it.id)
    return frozenset(found)


def _steps(
    pipeline: Pipeline, cost: Mapping[str, float], blamed: float, relief: float, consumer: float
) -> tuple[float, float, float]:
    """New step time as a share of the old: queued, overlapped, and the likely mix of both.

    `consumer`: its own time, in the same unit. `relief`: what the time of everything that stays is multiplied by, because it
    waits less for a core.
    """
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
    queued = relief * (consumer + front_after + back_after)
    if back_before <= 0:
        return queued, queued, queued
    overlapped = relief * max(consumer + front_after, back_after / back_before)
    return queued, overlapped, (front_before * queued + back_before * overlapped) / wait


def _uncrowded(found: Demands, work: Mapping[str, float]) -> tuple[float, float, float]:
    """What the cost of passing elements on is multiplied by when this work is no longer done beside it: worst, likely, best."""
    gone = sum(node.cpu_ns * (1 - work[node.iterator_id]) for node in found.nodes)
    share = gone / found.cpu_ns if found.cpu_ns > 0 else 0.0
    worst, likely, best = (1 - (1 - factor) * share for factor in CONTENTION_FACTOR)
    return worst, likely, best


def _rest(
    pipeline: Pipeline, cost: Mapping[str, float], work: Mapping[str, float], factor: float
) -> tuple[dict[str, float], dict[str, float]]:
    """(cost, work) factors, with those of what only passes elements on, or has no function left to run, made smaller."""
    passing = {
        it.id
        for it in pipeline.iterators
        if base_type(it.name) not in FILE_SOURCES
        and (work[it.id] * it.busy_ns <= it.busy_ns - it.function_ns if it.function_ns else work[it.id] == 1)
    }

    def changed(factors: Mapping[str, float]) -> dict[str, float]:
        return {i: f * (factor if i in passing else 1.0) for i, f in factors.items()}

    return changed(cost), changed(work)


def _relief(found: Demands, work: Mapping[str, float]) -> float:
    """What the times of all that stays are multiplied by, when work that competes with it for cores goes away."""
    before = found.consumer_cpu_ns + found.cpu_ns
    gone = sum(node.cpu_ns * (1 - work[node.iterator_id]) for node in found.nodes)
    return 1 - (1 - found.core_share) * (gone / before if before > 0 else 0.0)


def _limit(limits: Iterable[Limit], beside: float) -> float:
    """The longest step of all limits, the consumer's own made shorter; ns."""
    return max(each.step_ns * (beside if each.resource == "consumer" else 1.0) for each in limits)


def _beside_input(analysis: Analysis, found: Demands, work: Mapping[str, float]) -> float:
    """What the consumer's own time is at best multiplied by, when this work no longer goes on beside it."""
    if analysis.verdict.is_ceiling_measured or (analysis.host is not None and analysis.host.accelerators):
        return 1.0
    gone = sum(node.cpu_ns * (1 - work[node.iterator_id]) for node in found.nodes)
    return 1 - (1 - 1 / BESIDE_INPUT) * (gone / found.cpu_ns if found.cpu_ns > 0 else 0.0)


def _shortest_step(analysis: Analysis, pipeline: Pipeline, found: Demands, added_ns: float) -> float:
    """The ceiling, as a share of the step now."""
    verdict = analysis.verdict
    if pipeline.is_main and verdict.is_ceiling_measured and verdict.max_speedup:
        return min(1.0, 1 / verdict.max_speedup)
    least_ns = max(found.consumer_ns, added_ns)
    if analysis.recording is not None and analysis.recording.is_pipeline_alone:
        call = consumed_call(analysis, pipeline)
        components_ns = COMPONENT_NS * max(0, (call.element_spec if call is not None else "").count("TensorSpec(") - 1)
        is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
        alone_ns = max(NEXT_NS, added_ns) if is_ahead else NEXT_HERE_NS + added_ns
        least_ns = max(least_ns, alone_ns + components_ns)
    return max(min(1.0, least_ns / found.step_ns), 1 / _MOST)


NEXT_NS, NEXT_HERE_NS = 90_000.0, 50_000.0
"""Least time of a step where nothing is done with what a pipeline gives: Python's `next`, with waking the thread that fetches
ahead and without one. [Measured: elements of a cache, one component: 64 to 104 us behind a prefetch, 45 to 50 us without; proofs
of caches behind all work gave 87 to 109 us in all.]"""
COMPONENT_NS = 5_500.0
"""What each further component of an element adds to that. [Measured: 1, 5 and 20 components of 1 KiB behind a prefetch: 120, 154
and 219 us; without one 83, 104 and 224 us; medians of four.]"""
EPOCH_START_NS = 1_500_000.0
"""Making an iterator and its threads, which no change spares. [Measured between the epochs of pipelines alone: 0.3 to 2 ms.]"""
_MOST = 1000.0
"""No prediction beyond this: a step of which 99.9 % was waiting says nothing of what the rest takes by itself."""


def _epoch_start(analysis: Analysis, pipeline: Pipeline, found: Demands) -> float:
    """What beginning an epoch adds to each of its steps, as a share of the step now; counted where a pipeline alone is read epoch
    after epoch."""
    is_alone = analysis.recording is not None and analysis.recording.is_pipeline_alone
    steps = steps_per_epoch(analysis, pipeline) if is_alone else None
    return EPOCH_START_NS / steps / found.step_ns if steps else 0.0


def _spread(pipeline: Pipeline) -> float:
    """Half the 95 % interval of the median step over the median; where too few steps have none, how far the slow ones reach."""
    steps = pipeline.steps
    if steps is None or steps.median_ns <= 0:
        return 0.0
    if steps.low_ns is None or steps.high_ns is None:
        return max(0.0, (steps.p95_ns - steps.median_ns) / steps.median_ns)
    return max(0.0, (steps.high_ns - steps.low_ns) / 2 / steps.median_ns)


def _clamp(factor: float) -> float:
    return min(1.0, max(0.0, factor))
