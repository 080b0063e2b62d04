"""Compares the losses of the first batches without and with a change, as alternating runs of the whole script recorded them.

In: the runs of both sides.  Out: the curves side by side, and how far they are apart, beside how far runs of the unchanged script
are apart. What is compared is the mean over the batches so far, as Keras reports it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from advisor.host.calibration.proof import ROUNDING_OF_LOSSES
from advisor.model.outcome import LossDeviation, LossPoint
from advisor.prove.measure.run_steps import RunSteps


def loss_curve(before: Sequence[RunSteps], after: Sequence[RunSteps]) -> tuple[LossPoint, ...]:
    """Return the medians over the runs, for each number of batches whose loss all runs know.

    Returns:
        The points; empty if there is none, or if the losses were not seen at the same place: what a step differentiates need not
        be what it returns.
    """
    if len({run.loss_source for run in (*before, *after)}) > 1:
        return ()
    old, new = ([dict(run.losses) for run in runs] for runs in (before, after))
    if not old or not new:
        return ()
    common = set.intersection(*(set(losses) for losses in (*old, *new)))
    return tuple(
        LossPoint(batches, *(statistics.median(losses[batches] for losses in runs) for runs in (old, new)))
        for batches in sorted(common)
    )


def loss_deviation(before: Sequence[RunSteps], after: Sequence[RunSteps]) -> LossDeviation | None:
    """Compare the losses of the first batches; None if no number of batches has a loss in every run.

    A loss that is not finite with the change, but is without it, deviates infinitely.
    """
    curve = loss_curve(before, after)
    if not curve:
        return None
    between = max(_relative(dict(run.losses)[point.batches], point.before) for point in curve for run in before)
    apart = max(_relative(point.after, point.before) for point in curve)
    return LossDeviation(curve[-1].batches, apart, between if len(before) > 1 else None)


def note_on(deviation: LossDeviation | None) -> str:
    """Say in a sentence that a change moves the loss by more than chance and rounding; empty if not, or if that is unknown."""
    if deviation is None or deviation.relative <= max(deviation.between_runs or 0.0, ROUNDING_OF_LOSSES.value):
        return ""
    if not math.isfinite(deviation.relative):
        return deviation.sentence
    return (
        "The elements are the same, but the loss differs by more than it does between runs of the unchanged script: the change "
        "affects the training, too."
    )


def _relative(value: float, base: float) -> float:
    if not math.isfinite(base):
        return 0.0
    if not math.isfinite(value):
        return math.inf
    return abs(value - base) / max(abs(base), 1e-12)
