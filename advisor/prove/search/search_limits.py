"""When the search for changes ends although there are more to try.

In: the analysis of the unchanged script, the latest trial, a proposed change.  Out: `SearchLimits` for the greedy loop.

After a change is kept, the next proposals come from an analysis of the pipeline alone. What they gain there is more than what a
training step gains, whose own time stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.host.calibration.proof import MIN_GAIN
from advisor.model.edits import BuildOnce, Edit, InsertAfter, MoveAfter, SetOption
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.model.units import NS_PER_S
from advisor.predict.idle_consumer import idle_step_ns
from advisor.prove.trial.trial_result import Trial

_OVERLAPPING = (MoveAfter, SetOption, BuildOnce)
"""Edits that may save time of the training without making the pipeline alone faster."""


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """What the loop asks besides the clock; by default it tries everything."""

    is_enough: Callable[[Trial], bool] = lambda trial: False
    """Called after each kept fix; whether more speed would be of no use."""
    gain_left: Callable[[Trial, Finding], float | None] = lambda trial, finding: None
    """Called with the latest kept trial and a fix proposed after it: the speedup of a training step that it could bring at most;
    None if it is unknown. A fix below `MIN_GAIN` is not tried."""
    needs_total: Callable[[tuple[Edit, ...]], bool] = lambda edits: True
    """Whether all kept changes are to be measured together on the pipeline alone; not if the whole script will be measured."""
    overtime: Callable[[], float] = lambda: 0.0
    """Called if the time for trials is used up while a change with a predicted gain of `OVERTIME_GAIN` or more is untried; the
    result is the deadline for such changes."""
    more_time: str = "A longer budget allows more."
    """How to go on if the time is used up, as a sentence."""
    try_small: str = ""
    """How to try what `gain_left` has excluded, as a sentence."""


NO_LIMITS = SearchLimits()


def is_enough(analysis: Analysis, trial: Trial) -> bool:
    """Whether more speed would gain nothing.

    True if the pipeline alone needs less than `MIN_GAIN` of the training's own time per step, so that further changes would gain
    less than that even if pipeline and training shared every core.
    """
    own_s, alone_s = own_step_s(analysis), pipeline_s(analysis, trial)
    return own_s is not None and alone_s is not None and alone_s < MIN_GAIN.value * own_s


def gain_left(analysis: Analysis, trial: Trial, finding: Finding) -> float | None:
    """Return the largest speedup of a training step that another change may bring; None if it is unknown.

    A step takes at least as long as the slower one of pipeline and training, if they overlap, and at most as long as both one
    after the other, if they share the cores. The change does not alter how they overlap, so its gain lies between these cases.

    Args:
        analysis: The analysis of the unchanged script.
        trial: The trial of the latest kept change: how fast the pipeline alone is now.
        finding: The proposed change. The high end of its predicted speedup of the pipeline alone counts.
    """
    own_s, now_s = own_step_s(analysis), pipeline_s(analysis, trial)
    if own_s is None or now_s is None or finding.prediction is None or finding.fix is None:
        return None
    edits = finding.fix.edits
    if any(isinstance(edit, _OVERLAPPING) for edit in edits) or all(map(_is_prefetch, edits)) or finding.is_of_step:
        return None
    then_s = now_s / max(1.0, finding.prediction.high)
    return max((own_s + now_s) / (own_s + then_s), max(own_s, now_s) / max(own_s, then_s))


def own_step_s(analysis: Analysis) -> float | None:
    """Return the seconds of a training step without its wait for input; None if they are unknown.

    They are those of a step whose input costs nothing if these were measured: beside the pipeline, a step takes longer.
    """
    verdict = analysis.verdict
    if verdict.steps is None or verdict.steps.count < MIN_VERDICT_STEPS.value or verdict.input_wait_share is None:
        return None
    own_s = verdict.steps.mean_ns * (1 - verdict.input_wait_share) / NS_PER_S
    without_input_ns = idle_step_ns(analysis)
    if without_input_ns is not None:
        own_s = min(own_s, without_input_ns / NS_PER_S)
    return own_s if own_s > 0 else None


def pipeline_s(analysis: Analysis, trial: Trial) -> float | None:
    """Return the seconds that the pipeline alone needs for the elements of a step; None if its rate is unknown.

    With Keras' `steps_per_execution`, a step takes several elements.

    Args:
        analysis: The analysis of the unchanged script.
        trial: The trial whose changed pipeline is meant.
    """
    per_call = analysis.keras.get("steps_per_execution")
    elements = per_call if isinstance(per_call, int) and per_call > 0 else 1
    return elements / trial.rate_after if trial.rate_after else None


def _is_prefetch(edit: Edit) -> bool:
    return isinstance(edit, InsertAfter) and edit.method == "prefetch"
