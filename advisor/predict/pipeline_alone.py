"""Predicts the speedup of the input pipeline in isolation from the profile of a whole training.

In: an `Analysis` and the prediction of a change for the training step.  Out: the prediction of what a benchmark of the pipeline
alone will measure, whose consumer takes elements without using them.

Without the consumer, an element takes as long as the longest limit of the pipeline (`advisor.predict.demand`): a stage, the
cores, the GIL or the disk. A change that removes most of the work may make the pipeline alone many times faster while the
training step gains no more than its wait, so that the two predictions are different quantities. What they rest on is the same:
the effects of the change at both ends of the range, and how much cheaper it becomes to pass elements on where less work competes
for the cores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from advisor.host.calibration.prediction import MOST_SPEEDUP, OTHERS_KEEP, UNCERTAINTY
from advisor.model.finding import Effect, Prediction
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.demand import UNCHANGED, Demands, demands
from advisor.predict.machine_costs import machine_costs
from advisor.predict.operational import combined_factors, crowding_factors, predict_from, uncrowded_factors
from advisor.predict.unprofiled_costs import unprofiled


def predict_pipeline_alone(analysis: Analysis, pipeline: Pipeline, prediction: Prediction) -> Prediction | None:
    """Predict the speedup of the pipeline alone.

    Args:
        analysis: The analysis of the training, or of the pipeline alone.
        pipeline: The pipeline that is changed.
        prediction: The prediction for a step of that analysis.

    Returns:
        The prediction; None if the effects of the change on single iterators are unknown.
    """
    if analysis.recording is not None and analysis.recording.is_pipeline_alone:
        return prediction
    pipeline = unprofiled(pipeline)
    measured = demands(analysis, pipeline)
    if measured is None or not prediction.effects:
        return None
    alone = replace(measured, consumer_ns=0.0, consumer_cpu_ns=0.0)
    alone = _with_full_caches(alone, pipeline, {effect.iterator_id for effect in prediction.effects})
    costs = machine_costs(analysis)
    is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
    floor_ns = costs.next_ns if is_ahead else costs.next_here_ns

    def speedup(effects: Iterable[Effect], case: int) -> float:
        """The speedup in the worst, the likely or the best case (0, 1, 2)."""
        cost, work, keep = *_all_factors(pipeline, effects), OTHERS_KEEP.value[case]
        rest = uncrowded_factors(pipeline, cost, work, crowding_factors(alone, work)[case])
        before_ns, after_ns = _element_ns(alone, floor_ns, keep), _element_ns(alone, floor_ns, keep, *rest)
        return min(MOST_SPEEDUP.value, max(1.0, before_ns / after_ns))

    def of_a_step(effects: Iterable[Effect]) -> float:
        predicted = predict_from(measured, analysis, pipeline, *combined_factors(effects))
        return predicted.value if predicted is not None else 1.0

    effects = _as_sure_as(prediction, of_a_step(prediction.effects))
    best_effects = prediction.best_effects or prediction.effects
    slow, likely, fast = speedup(effects, 0), speedup(effects, 1), speedup(best_effects, 2)
    if prediction.best_effects:
        # As far between the effects and the best ones as the rule's prediction for a step is; in the middle if a step is as
        # fast with both, because the training limits it.
        least, most = of_a_step(effects), of_a_step(best_effects)
        between = (prediction.value - least) / (most - least) if most > least else 0.5
        likely += min(1.0, max(0.0, between)) * max(0.0, speedup(best_effects, 1) - likely)
    low = 1 + (slow - 1) * (1 - UNCERTAINTY.value) if prediction.low > 1 else 1.0
    high = 1 + (fast - 1) * (1 + UNCERTAINTY.value)
    predicted = replace(
        prediction, value=likely, low=min(low, likely), high=max(high, likely), first_pass=None, makes_once=False
    )
    return costs.mark(predicted, "next_ns" if is_ahead else "next_here_ns")


def _with_full_caches(alone: Demands, pipeline: Pipeline, changed: Set[str]) -> Demands:
    """The demands once the caches in memory are full, as a benchmark of the pipeline alone fills them first.

    If what fills them changes, they are those of the first pass: only there does it make a difference.
    """
    behind: set[str] = set()
    for it in pipeline.iterators:  # parents before children
        parent = pipeline.iterator(it.parent_id) if it.parent_id else None
        if parent is not None and (parent.id in behind or parent.name.startswith("MemoryCache")):
            behind.add(it.id)
    idle = frozenset(id_ for id_ in behind if not pipeline.iterator(id_).name.startswith("MemoryCache"))
    if idle & changed:
        return alone
    nodes = (replace(n, busy_ns=0.0, cpu_ns=0.0, python_ns=0.0) if n.iterator_id in idle else n for n in alone.nodes)
    return replace(alone, nodes=tuple(nodes), disk_ns=0.0 if alone.sources and alone.sources <= idle else alone.disk_ns)


def _all_factors(pipeline: Pipeline, effects: Iterable[Effect]) -> tuple[dict[str, float], dict[str, float]]:
    """(cost, work) factors of all iterators."""
    cost, work = combined_factors(effects)
    return {it.id: cost.get(it.id, 1.0) for it in pipeline.iterators}, {
        it.id: work.get(it.id, 1.0) for it in pipeline.iterators
    }


def _element_ns(
    alone: Demands,
    floor_ns: float,
    others_keep: float,
    cost: Mapping[str, float] = UNCHANGED,
    work: Mapping[str, float] = UNCHANGED,
) -> float:
    """Time per element of the pipeline alone, at least the time to take an element that is ready."""
    return max(floor_ns, alone.limits(cost, work, others_keep)[0].step_ns)


def _as_sure_as(prediction: Prediction, of_a_step: float) -> tuple[Effect, ...]:
    """The effects, weakened as far as the rule expects less of them than the model, which predicts `of_a_step`."""
    if of_a_step <= 1 or prediction.value >= of_a_step:
        return prediction.effects
    trust = max(0.0, (1 - 1 / prediction.value) / (1 - 1 / of_a_step)) if prediction.value > 1 else 0.0
    return tuple(Effect(e.iterator_id, 1 - trust * (1 - e.cost), 1 - trust * (1 - e.work)) for e in prediction.effects)
