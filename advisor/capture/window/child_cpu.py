"""Measures the CPU time of all descendants of this process, such as workers of `multiprocessing`.

In: two points in time.  Out: the CPU time that all descendants used between them, ns.

When a process waits for an ended child, the operating system adds the CPU time of the child's whole life to a counter of the
parent. Therefore the sum of the CPU times of all living descendants and of the counters for ended children increases by exactly
the CPU time used, no matter which children start or end in between.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

_ATTEMPTS = 3
"""Readings are repeated up to this many times: a child that is waited for during a reading would count twice or not at all."""


@dataclass(frozen=True, slots=True)
class ChildrenCpu:
    """CPU time counters of the descendants at one point in time."""

    waited_for_s: float
    """CPU time of the children of this process for which it has waited."""
    living_s: dict[psutil.Process, float]
    """CPU time of each living descendant, including the children for which it has waited."""

    @classmethod
    def take(cls, earlier: ChildrenCpu | None = None) -> ChildrenCpu:
        """Read the current counters.

        Args:
            earlier: Counters with which these will be compared. Its descendants are read even if their parent has ended.
        """
        for _ in range(_ATTEMPTS):
            before = _waited_for_s()
            counters = cls(before, _living(() if earlier is None else earlier.living_s))
            if _waited_for_s() == before:
                break
        return counters

    def since(self, start: ChildrenCpu) -> int:
        """Return the CPU time used since `start`, ns."""
        used_s = self.waited_for_s + sum(self.living_s.values()) - start.waited_for_s - sum(start.living_s.values())
        return max(0, round(used_s * 1e9))


def _waited_for_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _living(others: Iterable[psutil.Process]) -> dict[psutil.Process, float]:
    cpu_s: dict[psutil.Process, float] = {}
    with contextlib.suppress(psutil.Error, OSError):
        for process in {*psutil.Process().children(recursive=True), *others}:
            with contextlib.suppress(psutil.Error, OSError):
                if process.is_running():  # another process may have its pid by now
                    times = process.cpu_times()
                    cpu_s[process] = times.user + times.system + _waited_for_by(times)
    return cpu_s


def _waited_for_by(times: object) -> float:
    """Return the CPU time of ended children, s; 0 if the operating system does not report it (macOS)."""
    return float(getattr(times, "children_user", 0.0)) + float(getattr(times, "children_system", 0.0))
