"""An operational model of the speedup of a step if iterators become cheaper.

In: an `Analysis`, one of its pipelines, and the cost factor of each changed iterator.  Out: `Prediction`, or None if nothing was
measured.

The present step is the unit: 1 = consumer's own time + wait, and the wait is divided by blame. Two bounds apply:

* *Queued.* Blame upstream of an asynchronous boundary shrinks in place: new step = consumer + remaining wait. This holds if
  element times vary so much that the buffer alternates between full and empty.
* *Overlapped.* Upstream of an asynchronous boundary that keeps its consumer waiting, production takes the whole step. It shrinks
  as a whole and then overlaps with the consumer: new step = max(consumer, production). This holds for constant times.

Blame downstream of every asynchronous boundary is in the consumer's own thread and is added in both cases. The step cannot be
shorter than the ceiling and every `Limit` of the changed pipeline (stages, all cores, the GIL, the disk). If pipeline and
consumer compete for cores, removed work also speeds up the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.host.calibration.prediction import (
    CONTENTION_FACTOR,
    EPOCH_START_NS,
    MOST_SPEEDUP,
    OTHERS_KEEP,
    UNCERTAINTY,
)
from advisor.model.catalog import FILE_SOURCES, base_type
from advisor.model.finding import Effect, Prediction
from advisor.model.outlook import Limit
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.cache_size import steps_per_epoch
from advisor.predict.demand import UNCHANGED, Demands, demands
from advisor.predict.idle_consumer import consumer_factors, removed_share, with_idle_consumer
from advisor.predict.machine_costs import machine_costs
from advisor.predict.structure import consumed_call
from advisor.predict.unprofiled_costs import unprofiled


def predict_speedup(
    analysis: Analysis,
    pipeline: Pipeline,
    cost_factors: Mapping[str, float],
    work_factors: Mapping[str, float] = UNCHANGED,
    added_ns: float = 0.0,
) -> Prediction | None:
    """Predict the speedup of the step if the cost of each iterator is multiplied by its factor.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        cost_factors: Iterator id -> factor for the time that others wait for it, from 0 (free) to 1 (unchanged, the default).
        work_factors: Iterator id -> factor for its work. It stays 1 if the same work runs in parallel; a cache or a cheaper
            function sets both factors.
        added_ns: Additional cost per step in the consumer's thread, in nanoseconds.

    Returns:
        The prediction, or None if nothing was measured.
    """
    pipeline = unprofiled(pipeline)
    measured = demands(analysis, pipeline)
    return (
        None if measured is None else predict_from(measured, analysis, pipeline, cost_factors, work_factors, added_ns)
    )


def predict_from(
    measured: Demands,
    analysis: Analysis,
    pipeline: Pipeline,
    cost_factors: Mapping[str, float],
    work_factors: Mapping[str, float] = UNCHANGED,
    added_ns: float = 0.0,
) -> Prediction | None:
    """Predict like `predict_speedup`, with the demands of the pipeline already computed.

    Args:
        measured: The demands of the pipeline, without change.
        analysis: The run.
        pipeline: The pipeline of these demands, corrected by `unprofiled`.
        cost_factors: Iterator id -> factor for the time that others wait for it, 0 (free) to 1 (unchanged, the default).
        work_factors: Iterator id -> factor for its work, 0 to 1 (unchanged, the default).
        added_ns: Additional cost per step in the consumer's thread, in nanoseconds.

    Returns:
        The prediction; None if the consumer did not wait, or no iterator is to blame.
    """
    blamed = sum(it.blame_share for it in pipeline.iterators)
    if pipeline.wait_ns <= 0 or blamed <= 0:
        return None
    cost = {it.id: _clamp(cost_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    work = {it.id: _clamp(work_factors.get(it.id, 1.0)) for it in pipeline.iterators}
    relief = _relief(measured, work)
    own = 1 - pipeline.wait_share
    likely_own, best_own = consumer_factors(analysis, measured, work)
    rests = [uncrowded_factors(pipeline, cost, work, factor) for factor in crowding_factors(measured, work)]
    # The consumer speeds up as much as the removal of the concurrent work allows; at worst, not at all.
    steps = (
        max(_steps(pipeline, rests[0][0], blamed, relief, own)[:2]),
        _steps(pipeline, rests[1][0], blamed, relief, own * min(1.0, likely_own / relief))[2],
        min(_steps(pipeline, rests[2][0], blamed, relief, own * best_own)[:2]),
    )
    alone_ns, costs = _alone_step(analysis, pipeline, added_ns)
    shortest = _shortest_step(analysis, pipeline, measured, added_ns, alone_ns)
    start = _epoch_start(analysis, pipeline, measured)
    # A measured ceiling is that of a step without input; otherwise it is that of the consumer beside the pipeline.
    is_ceiling_known = pipeline.is_main and analysis.verdict.is_ceiling_measured
    floors = [shortest * (1.0 if is_ceiling_known else part) for part in (1.0, likely_own, best_own)]
    at_rest = with_idle_consumer(analysis, measured, work)
    # The cores that other processes will release are unknown: none, half, or all of theirs.
    slow, likely, fast = (
        min(
            1.0,
            (max(step, floor, _limit(now.limits(*rest, keep), part) / measured.step_ns) + start) / (1 + start),
        )
        for now, step, floor, rest, keep, part in zip(
            (measured, at_rest, at_rest),
            steps,
            floors,
            rests,
            OTHERS_KEEP.value,
            (1.0, likely_own, best_own),
            strict=True,
        )
    )
    spread = _spread(pipeline)
    value = max(1.0, 1 / likely)
    low = (1 + (1 / slow - 1) * (1 - UNCERTAINTY.value)) / (1 + spread)
    high = min((1 + (1 / fast - 1) * (1 + UNCERTAINTY.value)) * (1 + spread), 1 / max(floors[2], 1e-9))
    effects = tuple(Effect(i, cost[i], work[i]) for i in cost if cost[i] < 1 or work[i] < 1)
    prediction = Prediction(value, min(value, max(1.0, low)), max(value, high), effects)
    return machine_costs(analysis).mark(prediction, *costs)


def combined_factors(effects: Iterable[Effect]) -> tuple[dict[str, float], dict[str, float]]:
    """Combine the effects of several changes into (cost factors, work factors).

    Savings of work multiply. Of several changes that only distribute the same work over threads, the one with the lowest cost
    counts.
    """
    work: dict[str, float] = {}
    spread: dict[str, float] = {}
    for effect in effects:
        work[effect.iterator_id] = work.get(effect.iterator_id, 1.0) * effect.work
        alone = min(1.0, effect.cost / effect.work) if effect.work > 0 else 0.0
        spread[effect.iterator_id] = min(spread.get(effect.iterator_id, 1.0), alone)
    return {i: work[i] * spread[i] for i in work}, work


def overlap_factors(pipeline: Pipeline, cost_factors: Mapping[str, float] = UNCHANGED) -> dict[str, float]:
    """Return the cost factors of a prefetch at the end, which overlaps work in the consumer's thread with the consumer.

    Args:
        pipeline: The pipeline.
        cost_factors: Cost factors of other changes that are made together with it.
    """
    background = asynchronous(pipeline)
    wait = pipeline.wait_share
    front = {it.id: cost_factors.get(it.id, 1.0) for it in pipeline.iterators if it.id not in background}
    own = wait * sum(it.blame_share * front[it.id] for it in pipeline.iterators if it.id in front)
    left = max(0.0, own - (1 - wait)) / own if own > 0 else 1.0
    return {**cost_factors, **{iterator_id: factor * left for iterator_id, factor in front.items()}}


def asynchronous(pipeline: Pipeline) -> frozenset[str]:
    """Return the ids of the iterators that work on other threads than the consumer's: asynchronous ones and their inputs."""
    ids: set[str] = set()
    for it in pipeline.iterators:  # parents before children
        if it.is_async or it.parent_id in ids:
            ids.add(it.id)
    return frozenset(ids)


def _steps(
    pipeline: Pipeline, cost: Mapping[str, float], blamed: float, relief: float, consumer: float
) -> tuple[float, float, float]:
    """New step time relative to the old one: queued, overlapped, and the likely mix of both.

    `consumer` is its own time in the same unit. `relief` is the factor for everything that remains, which waits less for a core.
    """
    wait = pipeline.wait_share
    background = asynchronous(pipeline)
    front_before = front_after = back_before = back_after = 0.0
    for it in pipeline.iterators:
        share = wait * it.blame_share / blamed
        if it.id in background:
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


def crowding_factors(measured: Demands, work: Mapping[str, float]) -> tuple[float, float, float]:
    """Return factors for the cost of passing elements on without this concurrent work: worst, likely, best.

    Args:
        measured: The demands.
        work: Iterator id -> factor for its work.
    """
    share = removed_share(measured, work)
    worst, likely, best = (1 - (1 - factor) * share for factor in CONTENTION_FACTOR.value)
    return worst, likely, best


def uncrowded_factors(
    pipeline: Pipeline, cost: Mapping[str, float], work: Mapping[str, float], factor: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the factors of a change, reduced for iterators that only pass elements on or have no function left to run.

    Args:
        pipeline: The pipeline.
        cost: Iterator id -> factor for the time that others wait for it, for all iterators.
        work: The same for its work.
        factor: One of `crowding_factors`.

    Returns:
        Both.
    """
    passing = {
        it.id
        for it in pipeline.iterators
        if base_type(it.name) not in FILE_SOURCES
        and (work[it.id] * it.busy_ns <= it.busy_ns - it.function_ns if it.function_ns else work[it.id] == 1)
    }

    def changed(factors: Mapping[str, float]) -> dict[str, float]:
        return {i: f * (factor if i in passing else 1.0) for i, f in factors.items()}

    return changed(cost), changed(work)


def _relief(measured: Demands, work: Mapping[str, float]) -> float:
    """Factor for the time of everything that remains if work that competes for cores is removed."""
    before = measured.consumer_cpu_ns + measured.cpu_ns
    gone = sum(node.cpu_ns * (1 - work[node.iterator_id]) for node in measured.nodes)
    return 1 - (1 - measured.core_share) * (gone / before if before > 0 else 0.0)


def _limit(limits: Iterable[Limit], beside: float) -> float:
    """The longest step of all limits in ns, with the consumer's own time multiplied by `beside`."""
    return max(limit.step_ns * (beside if limit.resource == "consumer" else 1.0) for limit in limits)


def _shortest_step(
    analysis: Analysis, pipeline: Pipeline, measured: Demands, added_ns: float, alone_ns: float
) -> float:
    """The shortest possible step, relative to the present step."""
    verdict = analysis.verdict
    if pipeline.is_main and verdict.is_ceiling_measured and verdict.max_speedup:
        return min(1.0, 1 / verdict.max_speedup)
    least_ns = max(measured.consumer_ns, added_ns, alone_ns)
    return max(min(1.0, least_ns / measured.step_ns), 1 / MOST_SPEEDUP.value)


def _alone_step(analysis: Analysis, pipeline: Pipeline, added_ns: float) -> tuple[float, tuple[str, ...]]:
    """Shortest step in ns of a consumer that ignores the elements, and the costs it is made of; (0, ()) for a training."""
    if analysis.recording is None or not analysis.recording.is_pipeline_alone:
        return 0.0, ()
    costs = machine_costs(analysis)
    call = consumed_call(analysis, pipeline)
    more_components = max(0, (call.element_spec if call is not None else "").count("TensorSpec(") - 1)
    is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
    alone_ns = max(costs.next_ns, added_ns) if is_ahead else costs.next_here_ns + added_ns
    names = ("next_ns" if is_ahead else "next_here_ns", *(("component_ns",) if more_components else ()))
    return alone_ns + costs.component_ns * more_components, names


def _epoch_start(analysis: Analysis, pipeline: Pipeline, measured: Demands) -> float:
    """Cost of starting an epoch, per step and relative to the present step; only for pipelines that are read in isolation."""
    is_alone = analysis.recording is not None and analysis.recording.is_pipeline_alone
    steps = steps_per_epoch(analysis, pipeline) if is_alone else None
    return EPOCH_START_NS.value / steps / measured.step_ns if steps else 0.0


def _spread(pipeline: Pipeline) -> float:
    """Half the 95 % interval of the median step, relative to the median; with few steps, the distance to the 95th percentile."""
    steps = pipeline.steps
    if steps is None or steps.median_ns <= 0:
        return 0.0
    if steps.low_ns is None or steps.high_ns is None:
        return max(0.0, (steps.p95_ns - steps.median_ns) / steps.median_ns)
    return max(0.0, (steps.high_ns - steps.low_ns) / 2 / steps.median_ns)


def _clamp(factor: float) -> float:
    return min(1.0, max(0.0, factor))
