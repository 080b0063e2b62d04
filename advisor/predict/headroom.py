"""Predicts how fast the input pipeline could go if nothing but the pipeline limited it.

In: an `Analysis` whose training does not wait for input, and its main pipeline.  Out: `Headroom`.

A pipeline that is fast enough is idle most of the time, so its rate in the profile is that of the training. What it could deliver
follows from the demands of its iterators (`advisor.predict.demand`), with a consumer that takes elements without using them: a
step on an accelerator, which takes no core.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.host.calibration.prediction import OTHERS_KEEP, UNCERTAINTY
from advisor.model.outlook import Headroom
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import format_ns, format_ratio
from advisor.predict.demand import Demands
from advisor.predict.limit_names import name_of_limit
from advisor.predict.machine_costs import machine_costs

ON_THE_BRINK = 1.1
"""Speedup of the step up to which the pipeline counts as about as fast as the training: less than the error of the prediction."""
MOST_SHOWN = 100.0
"""Larger speedups are not told apart: the pipeline's own time is then too short to be measured beside the step."""


def headroom(analysis: Analysis, pipeline: Pipeline, measured: Demands) -> Headroom | None:
    """Predict the shortest step that the pipeline can feed.

    Args:
        analysis: The analysis of a training.
        pipeline: Its main pipeline, with costs as without the profiler.
        measured: The demands of the pipeline.

    Returns:
        The headroom; None if the training waits for input, if nothing is known about its steps, or if the pipeline was analysed
        alone.
    """
    verdict, recording = analysis.verdict, analysis.recording
    is_alone = recording is not None and recording.is_pipeline_alone
    if verdict.is_input_bound or verdict.input_wait_share is None or is_alone:
        return None
    alone = replace(measured, consumer_ns=0.0, consumer_cpu_ns=0.0)
    costs = machine_costs(analysis)
    is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
    floor_ns = costs.next_ns if is_ahead else costs.next_here_ns
    slow, likely, fast = (max(floor_ns, alone.limits(others_keep=keep)[0].step_ns) for keep in OTHERS_KEEP.value)
    if likely <= 0 or measured.step_ns <= 0:
        return None
    low_ns, high_ns = min(fast, likely) * (1 - UNCERTAINTY.value), max(slow, likely) * (1 + UNCERTAINTY.value)
    limit = alone.limits()[0]
    found = Headroom(likely, low_ns, high_ns, measured.step_ns, limit, sentence="")
    return replace(found, sentence=_sentence(pipeline, found))


def _sentence(pipeline: Pipeline, found: Headroom) -> str:
    speedup = found.step_speedup
    range_text = f"{format_ns(found.low_ns)} to {format_ns(found.high_ns)}"
    text = f"The input pipeline could deliver an element every {format_ns(found.element_ns)} (predicted, {range_text})"
    if speedup < ON_THE_BRINK:
        return f"{text}: with a faster training step, it would become the problem."
    if speedup > MOST_SHOWN:
        return f"{text}, enough for a training more than {format_ratio(MOST_SHOWN)} faster."
    then = (
        "the work of its own thread is" if found.limit.resource == "consumer" else name_of_limit(pipeline, found.limit)
    )
    return f"{text}, enough for a training {format_ratio(speedup)} faster; then {then} the limit."
