"""Predicts the speedup of an epoch if work that delays its start overlaps with the training instead.

In: an `Analysis`, a pipeline, the work before the first element, and the steps of an epoch.  Out: `Prediction`.

A shuffle emits no element before its buffer is full, and the training waits meanwhile. The same work after the shuffle, element
by element, overlaps with the training:

    before  start + max(training, production - start)
    after           max(training, production)
"""

from __future__ import annotations

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.demand import demands
from advisor.predict.unprofiled_costs import unprofiled


def predict_without_start(analysis: Analysis, pipeline: Pipeline, start_ns: float, steps: float) -> Prediction | None:
    """Predict the speedup of an epoch without the delay at its start.

    For a pipeline in isolation, the training time is unknown and assumed to equal the production time. The share of the delay
    within the measured steps is unknown, so the range starts at 1.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        start_ns: The work before the first element, in nanoseconds.
        steps: Steps per epoch.

    Returns:
        The prediction, or None if nothing was measured.
    """
    measured = demands(analysis, unprofiled(pipeline))
    if measured is None or steps <= 0:
        return None
    limits = measured.limits()
    training = sum(limit.step_ns for limit in limits if limit.resource == "consumer") * steps
    production = max((limit.step_ns for limit in limits if limit.resource != "consumer"), default=0.0) * steps
    if analysis.recording is not None and analysis.recording.is_pipeline_alone:
        training = production = max(training, production)
    then = max(training, production)
    if then <= 0:
        return None
    value = max(1.0, (start_ns + max(training, production - start_ns)) / then)
    return Prediction(value, 1.0, max(value, 1 + start_ns / then))
