"""Measures the resources that the process used between two points in time: CPU, disk, memory and waiting for the GIL.

In: two `Snapshot`s and a `LockProbe`.  Out: a `Usage`.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.capture.window.child_cpu import ChildrenCpu
from advisor.host.calibration.window import MIN_PROBES, PROBE_PAUSE_S, PROBE_SLACK_NS, PROBE_SLEEP_S, PROBES_AT_ONCE
from advisor.model.window_readings import Usage

_THREADS = Path("/proc/self/task")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Counters of the process and the machine at one point in time. None: not available."""

    time_ns: int
    """Unix time."""
    cpu_ns: int
    """CPU time of the process."""
    children: ChildrenCpu
    """CPU time of its descendants."""
    read_bytes: int | None
    """Bytes read from storage."""
    read_chars: int | None
    """Bytes returned by read calls, including those from the page cache."""
    machine_busy: int | None
    """Busy time of all cores, in clock ticks."""
    machine_total: int | None
    """Busy and idle time of all cores, in clock ticks."""
    core_wait_ns: Mapping[str, int] | None
    """Thread id -> time in which the thread was runnable without a core, since it began."""

    @classmethod
    def take(cls, earlier: Snapshot | None = None) -> Snapshot:
        """Read the current counters.

        Args:
            earlier: Snapshot with which this one will be compared.
        """
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
            _core_waits(),
        )


def usage_between(
    start: Snapshot, end: Snapshot, gil_wait_share: float | None, peak_rss_bytes: int | None = None
) -> Usage:
    """Return the difference of two snapshots.

    Args:
        start: The earlier snapshot.
        end: The later snapshot.
        gil_wait_share: Result of `LockProbe.stop`.
        peak_rss_bytes: Largest resident memory of the process; None: not wanted.
    """
    busy_share = None
    if start.machine_total is not None and end.machine_total is not None and end.machine_total > start.machine_total:
        busy_share = ((end.machine_busy or 0) - (start.machine_busy or 0)) / (end.machine_total - start.machine_total)
    return Usage(
        wall_ns=end.time_ns - start.time_ns,
        cpu_ns=end.cpu_ns - start.cpu_ns,
        children_cpu_ns=end.children.since(start.children),
        read_bytes=_difference(start.read_bytes, end.read_bytes),
        read_chars=_difference(start.read_chars, end.read_chars),
        peak_rss_bytes=peak_rss_bytes,
        host_cpu_busy_share=None if busy_share is None else min(1.0, max(0.0, busy_share)),
        gil_wait_share=gil_wait_share,
        core_wait_ns=_grown(start.core_wait_ns, end.core_wait_ns),
    )


class LockProbe:
    """A thread that repeatedly sleeps for 10 ms and measures the delay until it holds the GIL again.

    The delay has three causes: the timer slack of the kernel (subtracted as a constant), waiting for a core (subtracted, known
    from `/proc/thread-self/schedstat`) and waiting for the GIL (the rest). A thread that computes in Python releases the GIL
    5 ms after another thread requests it (`sys.getswitchinterval`), so a share of 0.33 means that the GIL is always held.
    """

    def __init__(self) -> None:
        self._shares: list[float] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="advisor-lock-probe", daemon=True)

    def start(self) -> None:
        """Start probing."""
        self._thread.start()

    def stop(self) -> float | None:
        """Stop probing.

        Returns:
            The median share of time spent waiting for the GIL; None if there were too few probes.
        """
        self._stop.set()
        return statistics.median(self._shares) if len(self._shares) >= MIN_PROBES.value else None

    def _run(self) -> None:
        queued = _queued_ns()
        number = 0
        while not self._stop.is_set():
            number += 1
            if number % PROBES_AT_ONCE.value == 0:
                self._stop.wait(PROBE_PAUSE_S.value)
                queued = _queued_ns()
            start = time.monotonic_ns()
            time.sleep(PROBE_SLEEP_S.value)
            delay_ns = time.monotonic_ns() - start - int(PROBE_SLEEP_S.value * 1e9) - PROBE_SLACK_NS.value
            now_queued = _queued_ns()
            delay_ns -= now_queued - queued
            queued = now_queued
            delay_ns = max(0, delay_ns)
            self._shares.append(delay_ns / (delay_ns + PROBE_SLEEP_S.value * 1e9))


def _queued_ns() -> int:
    """Return how long this thread has been runnable without a core; 0 on systems other than Linux."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _core_waits() -> dict[str, int] | None:
    """Return how long each thread of the process has been runnable without a core; None if the kernel does not tell."""
    waits = {}
    try:
        for thread in _THREADS.iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):  # threads end meanwhile
                waits[thread.name] = int((thread / "schedstat").read_bytes().split()[1])
    except OSError:
        return None
    return waits or None


def _grown(start: Mapping[str, int] | None, end: Mapping[str, int] | None) -> int | None:
    """Return the sum of the increases; threads that ended in between are not in it."""
    if start is None or end is None:
        return None
    return sum(max(0, waited - start.get(thread, 0)) for thread, waited in end.items())


def _process_io() -> dict[str, int]:
    with contextlib.suppress(OSError, ValueError):
        lines = Path("/proc/self/io").read_text().splitlines()
        return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}
    return {}


def _machine_times() -> tuple[int | None, int | None]:
    """Return (busy, total) clock ticks of all cores since boot."""
    try:
        with open("/proc/stat") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except (OSError, ValueError):
        return None, None
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def _difference(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start
