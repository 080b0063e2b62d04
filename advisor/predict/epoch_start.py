"""What an epoch gains when work that holds up its beginning is done beside the training instead.

In: an `Analysis`, a pipeline, the work that is done before the first element comes, and an epoch's steps.  Out: `Prediction`.

A shuffle gives nothing before its buffer is full, and nothing is trained meanwhile. The same work done element by element behind
it hides behind the training, as far as that leaves time for it:

    now     start + max(training, production - start)
    then            max(training, production)
"""

from __future__ import annotations

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.demand import demands
from advisor.predict.unprofiled_costs import unprofiled


def predict_without_start(analysis: Analysis, pipeline: Pipeline, start_ns: float, steps: float) -> Prediction | None:
    """Speedup of an epoch of so many steps; None where nothing was measured.

    A pipeline alone says nothing of the training: the value is then that of a training as long as the production. How much of
    the start is waited for in the measured steps already is not known, so the range begins at 1.
    """
    found = demands(analysis, unprofiled(pipeline))
    if found is None or steps <= 0:
        return None
    limits = found.limits()
    training = sum(each.step_ns for each in limits if each.resource == "consumer") * steps
    production = max((each.step_ns for each in limits if each.resource != "consumer"), default=0.0) * steps
    if analysis.recording is not None and analysis.recording.is_pipeline_alone:
        training = production = max(training, production)
    then = max(training, production)
    if then <= 0:
        return None
    value = max(1.0, (start_ns + max(training, production - start_ns)) / then)
    return Prediction(value, 1.0, max(value, 1 + start_ns / then))
