"""Lets the window of a run hold whole epochs, where these are short.

In: the recording of a run of the script.  Out: the `CaptureRequest` of further runs, with the steps of an epoch.

The first step of an epoch may take far longer than the others, for instance if a shuffle buffer is filled first. A window of
three seconds holds two or three such steps if an epoch takes 1.2 s, depending on when the window begins, and the mean step times
of two equal runs then differ by a third.
"""

from __future__ import annotations

import itertools
import math
import statistics
from dataclasses import dataclass, replace

from advisor.capture.request import CaptureRequest
from advisor.host.calibration.window import WHOLE_EPOCHS_STRETCH
from advisor.model.recording import Recording
from advisor.model.units import NS_PER_S
from advisor.prove.measure.run_steps import main_series


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch of the training, as a run has shown it."""

    steps: int
    seconds: float
    """From the start of its first step to the start of the next epoch's first step, so with a validation between them."""


def epoch_of(recording: Recording) -> Epoch | None:
    """Return the epochs of the main consumer's loop; None if none was complete, or if their numbers of steps differ."""
    series = main_series(recording)
    steps = None if series is None else series.epoch_steps
    if series is None or steps is None:
        return None
    places = [first - series.first_step for first in series.epoch_firsts]
    begins = [series.start_ns[place] for place in places if place < len(series.start_ns)]
    return Epoch(steps, statistics.median(after - before for before, after in itertools.pairwise(begins)) / NS_PER_S)


def in_whole_epochs(request: CaptureRequest, epoch: Epoch | None) -> CaptureRequest:
    """Return the request with the steps of an epoch, if its window is long enough for one.

    Args:
        request: How to run the script; its window is limited by `seconds`, or by `steps`, which then decide alone.
        epoch: An epoch of it; None if that is unknown.
    """
    if epoch is None or request.steps is not None or request.seconds is None:
        return request
    is_short = epoch.seconds <= WHOLE_EPOCHS_STRETCH.value * request.seconds
    return replace(request, epoch_steps=epoch.steps) if is_short else request


def window_seconds(request: CaptureRequest, epoch: Epoch | None) -> float | None:
    """Return how long the window of such a request takes if it is limited by `seconds`; else None."""
    if request.seconds is None or request.epoch_steps is None or epoch is None or epoch.seconds <= 0:
        return request.seconds
    whole = math.ceil(request.seconds / epoch.seconds) * epoch.seconds
    return min(whole, WHOLE_EPOCHS_STRETCH.value * request.seconds)
