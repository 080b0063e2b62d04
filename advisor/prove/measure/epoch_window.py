"""Chooses a window of whole epochs, for a change that saves time between two epochs.

In: the analysis of the unchanged script.  Out: `EpochWindow`. A window that begins and ends at the end of an epoch contains
the making of the dataset once for each of its epochs, so that a mean over it neither misses it nor counts it too often.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.host.calibration.proof import (
    MAX_WINDOW_S,
    MIN_WINDOW_EPOCHS,
    MIN_WINDOW_S,
    SCRIPT_SETTLE_S,
    WINDOW_STEPS,
)
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import NS_PER_S
from advisor.predict import remade
from advisor.predict.passes_over_data import root_steps_per_epoch
from advisor.prove.measure.steady_state import UnknownEpoch


@dataclass(frozen=True, slots=True)
class EpochWindow:
    """The warm-up and the window of a run, in whole epochs."""

    warmup: int
    """Steps before the window: at least one epoch, which also fills a cache that is kept from then on."""
    steps: int
    """Steps of the window."""
    epochs: int
    """Epochs of the window."""
    seconds: float
    """Estimated duration of both."""


def epoch_window(analysis: Analysis, least_warmup: int = 0, epoch_s: float | None = None) -> EpochWindow:
    """Return the window for runs of which the time between epochs counts.

    Args:
        analysis: The analysis of the unchanged script.
        least_warmup: Steps that the warm-up has at least.
        epoch_s: Seconds of an epoch on both sides; None: those of the unchanged script.

    Raises:
        UnknownEpoch: The number of steps per epoch is unknown.
    """
    pipeline = analysis.main
    steps = _steps_per_epoch(analysis, pipeline) if pipeline is not None else 0
    if pipeline is None or pipeline.steps is None or not steps:
        raise UnknownEpoch
    if epoch_s is None:
        again = remade(analysis, pipeline)
        made_ns = again.made_ns if again is not None else 0.0
        epoch_s = (steps * pipeline.steps.mean_ns + made_ns) / NS_PER_S
    total = _epochs_of_script(analysis, pipeline)
    before = max(1, math.ceil(max(least_warmup, SCRIPT_SETTLE_S.value / epoch_s * steps) / steps))
    if total is not None:
        before = max(math.ceil(least_warmup / steps), min(before, total - MIN_WINDOW_EPOCHS.value), 1)
    wanted = max(
        MIN_WINDOW_EPOCHS.value, math.ceil(MIN_WINDOW_S.value / epoch_s), math.ceil(WINDOW_STEPS.value / steps)
    )
    epochs = max(MIN_WINDOW_EPOCHS.value, min(wanted, math.floor(MAX_WINDOW_S.value / epoch_s)))
    if total is not None:
        epochs = max(1, min(epochs, total - before))
    return EpochWindow(before * steps, epochs * steps, epochs, (before + epochs) * epoch_s)


def _steps_per_epoch(analysis: Analysis, pipeline: Pipeline) -> int:
    """Steps of an epoch as the window counts them; 0 if unknown."""
    per_call = analysis.keras.get("steps_per_execution")
    divisor = per_call if isinstance(per_call, int) and per_call > 0 else 1
    return math.ceil((root_steps_per_epoch(analysis, pipeline) or 0) / divisor)


def _epochs_of_script(analysis: Analysis, pipeline: Pipeline) -> int | None:
    """How often the innermost loop around the consumer runs, or the epochs of a `fit` in no loop; None if unknown."""
    consumer = pipeline.consumer
    if consumer is None or consumer.loops is None:
        return None
    if consumer.loops:  # around a `fit`, it may run for more epochs than each call does
        return consumer.loops[0].count
    given = analysis.keras.get("epochs") if consumer.kind == "keras.fit" else None
    return given if isinstance(given, int) and given > 0 else None
