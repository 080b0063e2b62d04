"""The verdict on a profile with too few steps to judge the training, based on these steps.

In: an `Analysis` with its statistics.  Out: the same analysis; its verdict repeats the overview's figure and gives the number of
steps.

Otherwise, the verdict counts steps between two requests for an element, and the overview also counts steps that the program or a
device marked. A profile of one marked step therefore has an overview, but no step of the pipeline.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import format_count, format_ns, format_share


def add_few_steps_verdict(analysis: Analysis) -> Analysis:
    """Add a verdict on few steps; the analysis is unchanged if there are enough steps or none."""
    main = analysis.main
    if main is None or main.serves_elements or (main.steps is not None and main.steps.count >= MIN_VERDICT_STEPS.value):
        return analysis
    measured = _of_overview(analysis) or _of_pipeline(main)
    if measured is None:
        return analysis
    count, step_ns, share = measured
    which = "the only step" if count == 1 else f"the {format_count(count)} steps"
    length = format_ns(step_ns) if count == 1 else f"{format_ns(step_ns)} each (mean)"
    others = (
        "One step does"
        if count == 1
        else "So few steps do"
        if count < MIN_VERDICT_STEPS.value
        else "Steps that share no request do"
    )
    sentence = (
        f"In {which} of the profile, {format_share(share)} of {length} was spent waiting for the input pipeline. "
        f"{others} not show whether input is the problem in the whole training: capture a longer window."
    )
    if main.max_call_ns:
        sentence += f" The longest request for an element took {format_ns(main.max_call_ns)}."
    return replace(analysis, verdict=replace(analysis.verdict, input_wait_share=share, sentence=sentence))


def _of_overview(analysis: Analysis) -> tuple[int, int, float] | None:
    """Return number of steps, mean step in nanoseconds, and wait share, from the breakdown of the overview."""
    overview = analysis.statistics.overview if analysis.statistics is not None else None
    if overview is None or not overview.num_steps or not overview.breakdown.total_ns:
        return None
    step = overview.breakdown
    return overview.num_steps, overview.step_ns, (step.input_ns - step.to_device_ns) / step.total_ns


def _of_pipeline(main: Pipeline) -> tuple[int, int, float] | None:
    """Return number of steps, mean step in nanoseconds, and wait share, from the steps between two requests for an element."""
    if main.steps is None or not main.steps.count or not main.span_ns:
        return None
    return main.steps.count, round(main.span_ns / main.steps.count), main.wait_share
