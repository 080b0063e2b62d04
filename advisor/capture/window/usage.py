"""What the process used between two instants: CPU, disk, memory, and how long it waited for Python's lock.

In: two `Snapshot`s and a `LockProbe`.  Out: a `Usage`.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from advisor.capture.window.child_cpu import ChildrenCpu
from advisor.model.recording import Usage

_PROBE_SLEEP_S = 0.01
_PROBES_AT_ONCE = 5
_PROBE_PAUSE_S = 0.2
"""20 probes a second: where a wake-up costs 100 us (virtual machines), 0.2 % of one core."""
_MIN_PROBES = 3
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""`ru_maxrss` counts bytes on macOS and KiB elsewhere."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters of the process and the machine at one instant."""

    time_ns: int
    cpu_ns: int
    children: ChildrenCpu
    read_bytes: int | None
    read_chars: int | None
    machine_busy: int | None
    machine_total: int | None

    @classmethod
    def take(cls, earlier: Snapshot | None = None) -> Snapshot:
        """Now. `earlier`: the one that this one will be compared with."""
        own = resource.getrusage(resource.RUSAGE_SELF)
        io = _process_io()
        busy, total = _machine_times()
        return cls(
            time.time_ns(),
            int((own.ru_utime + own.ru_stime) * 1e9),
            ChildrenCpu.take(None if earlier is None else earlier.children),
            io.get("read_bytes"),
            io.get("rchar"),
            busy,
            total,
        )


def usage_between(start: Snapshot, end: Snapshot, gil_wait_share: float | None) -> Usage:
    """The difference of two snapshots."""
    busy_share = None
    if start.machine_total is not None and end.machine_total is not None and end.machine_total > start.machine_total:
        busy_share = ((end.machine_busy or 0) - (start.machine_busy or 0)) / (end.machine_total - start.machine_total)
    return Usage(
        wall_ns=end.time_ns - start.time_ns,
        cpu_ns=end.cpu_ns - start.cpu_ns,
        children_cpu_ns=end.children.since(start.children),
        read_bytes=_difference(start.read_bytes, end.read_bytes),
        read_chars=_difference(start.read_chars, end.read_chars),
        peak_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT,
        host_cpu_busy_share=None if busy_share is None else min(1.0, max(0.0, busy_share)),
        gil_wait_share=gil_wait_share,
    )


class LockProbe:
    """A thread that sleeps 10 ms and sees how much later it has Python's lock (the GIL) back.

    It comes late for three reasons: the kernel wakes it late (taken off as a constant), it waits for a core (known from
    `/proc/thread-self/schedstat`, taken off), and it waits for the lock (what is left). A thread that wants the lock from
    another that computes in Python gets it after 5 ms (`sys.getswitchinterval`): so 0.33 says that the lock is always held.
    """

    def __init__(self) -> None:
        self._shares: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="advisor-lock-probe", daemon=True)

    def start(self) -> None:
        """Begin probing."""
        self._thread.start()

    def stop(self) -> float | None:
        """End probing: the median share of time spent waiting for the lock, or None if there was no time to probe."""
        self._stop.set()
        return statistics.median(self._shares) if len(self._shares) >= _MIN_PROBES else None

    def _run(self) -> None:
        slack_ns = 100_000  # Linux' default timer slack is 50 us, and waking up takes as long again
        queued = _queued_ns()
        number = 0
        while not self._stop.is_set():
            number += 1
            if number % _PROBES_AT_ONCE == 0:
                self._stop.wait(_PROBE_PAUSE_S)
                queued = _queued_ns()
            start = time.monotonic_ns()
            time.sleep(_PROBE_SLEEP_S)
            late = time.monotonic_ns() - start - int(_PROBE_SLEEP_S * 1e9) - slack_ns
            now_queued = _queued_ns()
            late -= now_queued - queued
            queued = now_queued
            late = max(0, late)
            self._shares.append(late / (late + _PROBE_SLEEP_S * 1e9))


def _queued_ns() -> int:
    """How long this thread has been runnable without a core (Linux; elsewhere 0)."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _process_io() -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc/self/io").read_text().splitlines()
        return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {}


def _machine_times() -> tuple[int | None, int | None]:
    """(busy, all) ticks of all cores since boot."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None, None
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def _difference(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start
