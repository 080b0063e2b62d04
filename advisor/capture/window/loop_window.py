"""Decides when a window on a loop inside a tf.function closes, whose steps Python does not see.

In: time, and tf.data's own model of the loop's iterator where Python holds one.  Out: whether enough elements were taken; whether
a profile that was written shows any iterator at all.
"""

from __future__ import annotations

import mmap
from pathlib import Path

from advisor.capture.instrument.consumers import Track
from advisor.capture.instrument.iterator_model import elements_produced
from advisor.host.calibration.window import (
    LOOP_ELEMENTS,
    LOOP_LOOK_S,
    LOOP_SECONDS,
    MAX_LOOP_SECONDS,
    REOPENED_LOOP_FACTOR,
)

_EVENT = b"Iterator::"
"""Part of the name of each event of a tf.data iterator (`tensorflow/core/data/name_utils.h`)."""


class LoopWindow:
    """The end of one window.

    Args:
        track: The consumer whose loop it is.
        seconds: The user's limit in seconds; None: none.
        least_s: Seconds that the window lasts at least without such a limit.
    """

    def __init__(self, track: Track, seconds: float | None, least_s: float = LOOP_SECONDS.value) -> None:
        self._track, self._seconds = track, seconds
        self.least_s = min(least_s, MAX_LOOP_SECONDS.value)
        self._first = elements_produced(track)
        self._next_look_s = self.least_s

    @property
    def expected_s(self) -> float:
        """The length of the window in seconds, as far as it is known."""
        return self._seconds or self.least_s

    def is_over(self, elapsed_s: float) -> bool:
        """Return whether to close the window.

        Args:
            elapsed_s: Seconds since it was opened.
        """
        if self._seconds is not None:
            return elapsed_s >= self._seconds
        if elapsed_s < self._next_look_s:
            return False
        self._next_look_s = elapsed_s + LOOP_LOOK_S.value
        return elapsed_s >= MAX_LOOP_SECONDS.value or self._has_enough()

    def _has_enough(self) -> bool:
        """Whether enough elements were taken; True if that is unknown."""
        now = elements_produced(self._track)
        if now is None:
            return True
        if self._first is None or self._first[0] != now[0]:  # the iterator is a new one
            return now[1] >= LOOP_ELEMENTS.value
        return now[1] - self._first[1] >= LOOP_ELEMENTS.value

    def longer(self, folder: Path) -> LoopWindow | None:
        """Return a longer window if no iterator ran in this one: it fell inside a single long step.

        Args:
            folder: Where the profile of this window was written.
        """
        if self._seconds is not None or self.least_s >= MAX_LOOP_SECONDS.value or shows_iterators(folder):
            return None
        return LoopWindow(self._track, None, REOPENED_LOOP_FACTOR.value * self.least_s)


def shows_iterators(folder: Path) -> bool:
    """Return whether a profile in the folder holds the name of an iterator's event; True if it cannot be read."""
    for path in folder.glob("plugins/profile/*/*.xplane.pb"):
        try:
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                if content.find(_EVENT) >= 0:
                    return True
        except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
            return True
    return not any(folder.glob("plugins/profile/*/*.xplane.pb"))
