"""Predicts the speedup of the input pipeline in isolation from the profile of a whole training.

In: an `Analysis` and the prediction of a change for the training step.  Out: the prediction of what a benchmark of the pipeline
alone will measure, whose consumer takes elements without using them.

Without the consumer, an element takes as long as the longest limit of the pipeline (`advisor.predict.demand`): a stage, the
cores, the GIL or the disk. A change that removes most of the work may make the pipeline alone many times faster while the
training step gains no more than its wait, so that the two predictions are different quantities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from advisor.host.calibration.prediction import MOST_SPEEDUP, OTHERS_KEEP, UNCERTAINTY
from advisor.model.finding import Effect, Prediction
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.demand import UNCHANGED, Demands, demands
from advisor.predict.machine_costs import machine_costs
from advisor.predict.operational import combined_factors, predict_from
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
    effects = _as_sure_as(prediction, measured, analysis, pipeline)
    alone = replace(measured, consumer_ns=0.0, consumer_cpu_ns=0.0)
    costs = machine_costs(analysis)
    is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
    floor_ns = costs.next_ns if is_ahead else costs.next_here_ns
    cost, work = combined_factors(effects)
    slow, likely, fast = (
        min(
            MOST_SPEEDUP.value,
            max(1.0, _element_ns(alone, floor_ns, keep) / _element_ns(alone, floor_ns, keep, cost, work)),
        )
        for keep in OTHERS_KEEP.value
    )
    low = 1 + (slow - 1) * (1 - UNCERTAINTY.value) if prediction.low > 1 else 1.0
    high = 1 + (fast - 1) * (1 + UNCERTAINTY.value)
    predicted = Prediction(likely, min(low, likely), max(high, likely), prediction.effects, prediction.uncalibrated)
    return costs.mark(predicted, "next_ns" if is_ahead else "next_here_ns")


def _element_ns(
    alone: Demands,
    floor_ns: float,
    others_keep: float,
    cost: Mapping[str, float] = UNCHANGED,
    work: Mapping[str, float] = UNCHANGED,
) -> float:
    """Time per element of the pipeline alone, at least the time to take an element that is ready."""
    return max(floor_ns, alone.limits(cost, work, others_keep)[0].step_ns)


def _as_sure_as(
    prediction: Prediction, measured: Demands, analysis: Analysis, pipeline: Pipeline
) -> tuple[Effect, ...]:
    """The effects, weakened as far as the rule expects less of them than the model."""
    step = predict_from(measured, analysis, pipeline, *combined_factors(prediction.effects))
    if step is None or step.value <= 1 or prediction.value >= step.value:
        return prediction.effects
    trust = max(0.0, (1 - 1 / prediction.value) / (1 - 1 / step.value)) if prediction.value > 1 else 0.0
    return tuple(Effect(e.iterator_id, 1 - trust * (1 - e.cost), 1 - trust * (1 - e.work)) for e in prediction.effects)
