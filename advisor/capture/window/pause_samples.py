"""Samples Python functions in the pause before the window, so that nothing measured pays for it.

In: the start and the end of the pause.  Out: the samples, added to the window's capture.

With the sampler, a loop in Python takes 7 % longer, and short functions in four threads 19 %. If the pause was too short for
enough samples, the profiled stretch is sampled instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from advisor.capture.window.measurement import Capture
from advisor.capture.window.python_sampler import PythonSampler
from advisor.host.calibration.window import PAUSE_SAMPLES, PAUSE_SAMPLING_S
from advisor.model.recording import PythonSamples


class PauseSamples:
    """The samples of the latest pause of a run.

    Args:
        make: Makes a sampler of the pipelines' Python functions; None if there are none.
    """

    def __init__(self, make: Callable[[], PythonSampler | None]) -> None:
        self._make = make
        self._sampler: PythonSampler | None = None
        self._taken: PythonSamples | None = None
        self._has_begun = False
        """Whether it was decided in this pause what to do; the decision looks at all recorded calls, so it is made once."""

    def begin(self) -> None:
        """Start sampling, unless that has been done. Called at many steps of a pause."""
        if not self._has_begun and self._taken is None:
            self._has_begun = True
            self._sampler = self._make()
            if self._sampler is not None:
                self._sampler.start(may_switch_faster=True, limit_s=PAUSE_SAMPLING_S.value)

    @property
    def is_waiting(self) -> bool:
        """Whether a longer pause would give more samples that are needed."""
        return self._sampler is not None and not self._has_enough(self._sampler)

    def end(self) -> None:
        """Stop sampling, and discard the samples if they are too few."""
        self._has_begun = False
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            samples = sampler.stop()
            self._taken = samples if self._has_enough(sampler) else None

    @staticmethod
    def _has_enough(sampler: PythonSampler) -> bool:
        """Whether it has seen enough, or has run so long that there can be little to see."""
        return sampler.has_reached_limit or sampler.samples >= PAUSE_SAMPLES.value

    def forget(self) -> None:
        """Discard the samples: another loop is followed, whose pipeline may run other functions."""
        self.end()
        self._taken = None

    def sampler_of_window(self) -> PythonSampler | None:
        """Return a sampler for the profiled stretch; None if it need not be sampled."""
        return self._make() if self._taken is None else None

    def added_to(self, capture: Capture) -> Capture:
        """Return a capture of the window with the samples of the pause, if these were enough.

        They are taken to represent the profiled stretch, so each stands for its share of that one's length.
        """
        if self._taken is None:
            return capture
        stretch_ns = capture.window.end_ns - capture.window.start_ns
        return replace(capture, python_samples=replace(self._taken, duration_ns=stretch_ns))
