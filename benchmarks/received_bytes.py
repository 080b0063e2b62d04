"""Samples the bytes that a network interface receives, and finds the rate during the runs of a training.

In: the name of an interface.  Out: `steady_rate`: bytes per second in the last runs that received anything.
"""

from __future__ import annotations

import itertools
import statistics
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

COUNTERS = Path("/proc/net/dev")
SAMPLE_S = 0.25
LEAST_RUN_S, PAUSE_S = 2.0, 1.0
"""A run receives for so long at least; the next process needs longer than the pause to start TensorFlow."""
_QUIET = 0.02
"""Share of the highest rate below which an interval counts as quiet: heartbeats and the answers of the dispatcher."""


class ReceivedBytes:
    """Context manager: samples the counter of an interface in a thread."""

    def __init__(self, interface: str) -> None:
        self._interface = interface
        self.samples: list[tuple[float, int]] = []
        """(time in s, bytes received until then)."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> ReceivedBytes:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stopped.wait(SAMPLE_S):
            self.samples.append((time.monotonic(), received(COUNTERS.read_text(), self._interface)))


def received(counters: str, interface: str) -> int:
    """Return the bytes that an interface has received, from the text of `/proc/net/dev`.

    Raises:
        ValueError: There is no such interface.
    """
    for line in counters.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == interface:
            return int(rest.split()[0])
    raise ValueError(f"/proc/net/dev has no interface {interface}.")


def steady_rate(samples: Sequence[tuple[float, int]], runs: int) -> float | None:
    """Return the bytes per second in the last `runs` runs: the median of their means, each without its first and last interval.

    A mean, because an interval holds a whole number of batches, and few of them if batches are large. What is read before,
    such as a pass that is compared, does not count. None if there were fewer runs.
    """
    rates = [(b[0], (b[1] - a[1]) / (b[0] - a[0])) for a, b in itertools.pairwise(samples) if b[0] > a[0]]
    quiet = _QUIET * max((rate for _, rate in rates), default=0.0)
    found: list[list[tuple[float, float]]] = []
    for instant, rate in rates:
        if rate <= quiet:
            continue
        if not found or instant - found[-1][-1][0] > PAUSE_S:
            found.append([])
        found[-1].append((instant, rate))
    long = [run for run in found if run[-1][0] - run[0][0] >= LEAST_RUN_S]
    if runs < 1 or len(long) < runs:
        return None
    return statistics.median(statistics.fmean(rate for _, rate in run[1:-1]) for run in long[-runs:])
