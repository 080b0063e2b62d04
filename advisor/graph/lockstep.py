"""Finds pipelines that one training step reads together, such as the two datasets of a GAN.

In: the main pipeline, the others of its host, and the steps of their consumers.  Out: the pipeline that the step waits for most.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from advisor.host.calibration.analysis import LOCKSTEP_SHARE, MIN_VERDICT_STEPS
from advisor.model.pipeline import Pipeline
from advisor.model.recording import Recording


def longest_waited_for(main: Pipeline, others: Iterable[Pipeline], recording: Recording) -> Pipeline:
    """Return the pipeline that the main consumer's loop waits for most; `main` itself if it reads no other one.

    The recording names one iterator of the loop as the main one: the last that was advanced before a gradient tape was opened.
    The step may wait for another one.

    Args:
        main: The pipeline of the recorded main consumer.
        others: Pipelines of the same host.
        recording: The recording of the run.
    """
    starts = {series.consumer_id: np.array(series.start_ns, np.int64) for series in recording.steps}
    own = starts.get(main.consumer.id if main.consumer is not None else "")
    if own is None:
        return main
    together = [
        other
        for other in others
        if other.consumer is not None
        and other.consumer.id in starts
        and other.steps is not None
        and _alternate(own, starts[other.consumer.id])
    ]
    return max([main, *together], key=lambda pipeline: pipeline.wait_ns)


def _alternate(one: npt.NDArray[np.int64], two: npt.NDArray[np.int64]) -> bool:
    """Whether nearly all steps of one consumer contain the beginning of exactly one step of the other."""
    if len(one) <= MIN_VERDICT_STEPS.value:
        return False
    inside = np.diff(np.searchsorted(two, one))
    return bool(np.mean(inside == 1) >= LOCKSTEP_SHARE.value)
