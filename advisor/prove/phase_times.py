"""Measures where the wall time of a proof goes, with the number of starts of the script in each phase."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from advisor.model.proof_result import Phase

SHORTEST_S = 0.05
"""A phase without a start of the script that is shorter had nothing to do."""


class PhaseTimes:
    """The phases so far, in order."""

    def __init__(self, runs: Callable[[], int]) -> None:
        """Begin.

        Args:
            runs: Returns how often the script has been started until now.
        """
        self._runs = runs
        self._phases: list[Phase] = []

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Those that have ended."""
        return tuple(self._phases)

    @contextmanager
    def measure(self, name: str) -> Iterator[None]:
        """Measure the wall time of a block, and count the starts of the script in it; one with nothing to do is left out."""
        began, before = time.monotonic(), self._runs()
        try:
            yield
        finally:
            seconds, runs = time.monotonic() - began, self._runs() - before
            if runs or seconds >= SHORTEST_S:
                self._phases.append(Phase(name, seconds, runs))
