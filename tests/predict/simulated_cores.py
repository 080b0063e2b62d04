"""Cores that threads share evenly, for the event simulator.

In: amounts of work.  Out: events that happen when the work is done.
"""

from __future__ import annotations

import heapq
import math
from itertools import count

import simpy

_NOTHING = 1e-6
"""Work in microseconds that is a rounding error."""


class Cores:
    """The cores of a machine under a fair scheduler: with more threads than cores, each gets the same part of a core.

    Each thread's work ends at a fixed reading of a clock that runs at the speed of a thread, so a change of the number of threads
    changes nothing but the speed of this clock.
    """

    def __init__(self, env: simpy.Environment, number: int) -> None:
        self.busy_us = 0.0
        self._env, self._number = env, number
        self._clock = self._since = 0.0
        self._running: list[tuple[float, int, simpy.Event]] = []
        """(reading of the clock at which it ends, order, event) of each thread that computes."""
        self._order = count()
        self._due = math.inf
        """When the clock is next looked at."""

    def compute(self, microseconds: float) -> simpy.Event:
        """Compute for so long, more if there are more threads than cores."""
        self._advance()
        event = self._env.event()
        heapq.heappush(self._running, (self._clock + microseconds, next(self._order), event))
        self._look_at_the_end()
        return event

    @property
    def _speed(self) -> float:
        return min(1.0, self._number / len(self._running)) if self._running else 1.0

    def _advance(self) -> None:
        elapsed = self._env.now - self._since
        self._since = self._env.now
        self._clock += elapsed * self._speed
        self.busy_us += elapsed * min(self._number, len(self._running))

    def _look_at_the_end(self) -> None:
        if not self._running:
            return
        delay = max(0.0, self._running[0][0] - self._clock) / self._speed
        if self._env.now + delay < self._due:
            self._due = self._env.now + delay
            timer = self._env.timeout(delay, self._due)
            assert timer.callbacks is not None
            timer.callbacks.append(self._look)

    def _look(self, timer: simpy.Event) -> None:
        if timer.value != self._due:
            return  # work that ends earlier came after this timer was set
        self._due = math.inf
        self._advance()
        while self._running and self._running[0][0] <= self._clock + _NOTHING:
            heapq.heappop(self._running)[2].succeed()
        self._look_at_the_end()
