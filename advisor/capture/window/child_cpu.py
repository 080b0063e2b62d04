"""CPU time of the child processes of this process: workers of `multiprocessing`, and whatever else the script starts.

In: two instants.  Out: the CPU time that all descendants used between them, ns.

The operating system adds the whole life of a child to its parent's counter at the moment at which the parent waits for it. So the
counters of all living descendants are added to those of their waited-for children: together they grow by exactly what was used,
whether a child lives on, ends, or was there before.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

_ATTEMPTS = 3
"""A child may be waited for while the others are read: then it would count twice, or not at all."""


@dataclass(frozen=True, slots=True)
class ChildrenCpu:
    """The counters at one instant."""

    waited_for_s: float
    """Of this process' own children that it has waited for."""
    living_s: dict[psutil.Process, float]
    """Of each living descendant, its waited-for children included."""

    @classmethod
    def take(cls, earlier: ChildrenCpu | None = None) -> ChildrenCpu:
        """Now. Descendants of `earlier` whose parent has ended meanwhile still count."""
        for _ in range(_ATTEMPTS):
            before = _waited_for_s()
            found = cls(before, _living(() if earlier is None else earlier.living_s))
            if _waited_for_s() == before:
                break
        return found

    def since(self, start: ChildrenCpu) -> int:
        """CPU time between `start` and this instant, ns."""
        used_s = self.waited_for_s + sum(self.living_s.values()) - start.waited_for_s - sum(start.living_s.values())
        return max(0, round(used_s * 1e9))


def _waited_for_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _living(others: Iterable[psutil.Process]) -> dict[psutil.Process, float]:
    found: dict[psutil.Process, float] = {}
    with contextlib.suppress(psutil.Error, OSError):
        for process in {*psutil.Process().children(recursive=True), *others}:
            with contextlib.suppress(psutil.Error, OSError):
                if process.is_running():  # its number may be another process' by now
                    times = process.cpu_times()
                    found[process] = times.user + times.system + _waited_for_by(times)
    return found


def _waited_for_by(times: object) -> float:
    """0 where the system does not tell (macOS)."""
    return float(getattr(times, "children_user", 0.0)) + float(getattr(times, "children_system", 0.0))
