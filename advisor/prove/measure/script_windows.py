"""How the runs of the whole script are measured: their warm-up and window, and how long they take.

In: the analysis of the unchanged script, the user's limits, edits.  Out: `ScriptWindow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.capture.request import CaptureRequest
from advisor.host.calibration.proof import (
    MAX_WINDOW_S,
    MIN_WINDOW_S,
    OWN_CACHE_FILL_S,
    SCRIPT_SETTLE_S,
    SHUTDOWN_S,
    UNKNOWN_STEP_S,
    WINDOW_STEPS,
)
from advisor.model.edits import BuildOnce, Edit
from advisor.model.pipeline import Analysis
from advisor.model.sequential_test import MIN_PAIRS
from advisor.model.units import NS_PER_S
from advisor.prove.measure.epoch_window import EpochWindow, epoch_window
from advisor.prove.measure.run_steps import main_series
from advisor.prove.measure.steady_state import steps_until_own_are_full, steps_until_steady
from advisor.prove.measure.whole_epochs import epoch_of, in_whole_epochs, window_seconds
from advisor.rewrite.fix_plan import turns_autotune_off

_LONGEST_WINDOW_S = 3600.0
"""A window of whole epochs ends after its steps; the deadline of the runs limits its time."""


@dataclass(frozen=True, slots=True)
class ScriptWindow:
    """The warm-up and the window of the runs of both sides."""

    request: CaptureRequest
    run_s: float
    """Estimated seconds of one run."""
    filling: int = 0
    """Steps of the warm-up if new caches make it longer than that of other runs; else 0."""
    epochs: EpochWindow | None = None
    """The window holds whole epochs, so that the time between two of them counts."""

    def runs_s(self, done: int = 0) -> float:
        """Estimated seconds of the fewest runs that may decide, of which some are done."""
        return (2 * MIN_PAIRS - done) * self.run_s


class ScriptWindows:
    """The windows of one script."""

    def __init__(self, request: CaptureRequest, analysis: Analysis, startup_s: float) -> None:
        """Create the windows.

        Args:
            request: How to run the script, with the user's limits of the window.
            analysis: The analysis of the unchanged script.
            startup_s: Seconds from the script's start to its first step.
        """
        self._analysis, self._startup_s = analysis, startup_s
        steps = analysis.verdict.steps
        self._step_s = steps.mean_ns / NS_PER_S if steps is not None else UNKNOWN_STEP_S.value
        seconds = request.seconds
        if seconds is None and request.steps is None:
            seconds = min(MAX_WINDOW_S.value, max(MIN_WINDOW_S.value, WINDOW_STEPS.value * self._step_s))
        self._epoch = None if analysis.recording is None else epoch_of(analysis.recording)
        self._request = in_whole_epochs(replace(request, seconds=seconds), self._epoch)

    @property
    def has_steps(self) -> bool:
        """Whether the steps of the training can be observed; not so in a loop inside a tf.function."""
        recording = self._analysis.recording
        return recording is not None and main_series(recording) is not None

    @property
    def least_run_s(self) -> float:
        """Estimated seconds of a run without new caches."""
        return self._run_s(0)

    def of(self, edits: Sequence[Edit], epoch_s: float | None = None) -> ScriptWindow:
        """Return the window for the script with these edits.

        Args:
            edits: The edits.
            epoch_s: As for `epoch_window`.

        Raises:
            UnknownEpoch: It depends on the number of steps per epoch, which is unknown.
        """
        steady = steps_until_steady(self._analysis, edits)  # a new cache must be full
        own = steps_until_own_are_full(self._analysis, edits)
        if own is not None and own * self._step_s <= OWN_CACHE_FILL_S.value:
            steady = max(steady or 0, own)
        warmup = self._request.warmup if steady is None else max(steady, self._request.warmup or 0)
        filling = warmup if warmup and warmup * self._step_s > SCRIPT_SETTLE_S.value else 0
        request = replace(self._request, warmup=warmup)
        # Some changes save time between epochs, which is part of no step.
        if not any(isinstance(edit, BuildOnce) or turns_autotune_off(edit) for edit in edits):
            return ScriptWindow(request, self._run_s(warmup or 0), filling)
        window = epoch_window(self._analysis, warmup or 0, epoch_s)
        request = replace(
            request, warmup=window.warmup, steps=window.steps, seconds=_LONGEST_WINDOW_S, epoch_steps=None
        )
        return ScriptWindow(request, self._startup_s + window.seconds + SHUTDOWN_S.value, filling, window)

    def _run_s(self, warmup: int) -> float:
        settle_s = max(SCRIPT_SETTLE_S.value, warmup * self._step_s)
        window_s = (
            window_seconds(self._request, self._epoch) or (self._request.steps or WINDOW_STEPS.value) * self._step_s
        )
        return self._startup_s + settle_s + window_s + SHUTDOWN_S.value
