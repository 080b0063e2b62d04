"""The memory of the script's process: what the script needs, and bounds on what TensorFlow's profiler adds.

In: `before_profile` and `after_profile`, and looks of the watchdog.  Out: the peak without profiled stretches; memory that the
profiler keeps the allocator from using again is given back to the system.

While the profiler runs, its many small events are allocated between the tensors. glibc (observed with 2.36) then finds no place
for a new tensor between them, because an aligned allocation is looked for with room to spare, and takes new memory although that
of earlier tensors is free. A pipeline on two cores grew by 0.6 to 1.1 GB per second of a profile that was 6 MB in the end
(docs/measuring.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from advisor.host.calibration.window import PROFILE_ROOM_BYTES, PROFILE_ROOM_SHARE, TRIM_FROM_BYTES
from advisor.host.machine import memory_bytes

_PROCESS = Path("/proc/self")
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""`ru_maxrss` counts bytes on macOS and KiB elsewhere."""


def rss_bytes() -> int | None:
    """Return the resident memory of this process; None where /proc does not show it."""
    try:
        return int((_PROCESS / "statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def status_bytes(name: str, process: Path = _PROCESS) -> int | None:
    """Return a size from the `status` file of a process in bytes; None where there is none.

    Args:
        name: Such as `VmHWM`, the largest resident memory so far.
        process: Folder of the process in /proc.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (process / "status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return None


def peak_rss_bytes() -> int:
    """Return the largest resident memory that this process has had.

    Without /proc, it is at least the memory that the process had from which this one was started: `ru_maxrss` outlives `exec`.
    """
    known = status_bytes("VmHWM")
    if known is not None:
        return known
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_UNIT


def trim() -> None:
    """Give free memory of the C allocator back to the system, where it can (glibc)."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # macOS, musl; Windows has no handle of the process itself
        return


def _profile_room() -> int:
    return min(PROFILE_ROOM_BYTES.value, int(PROFILE_ROOM_SHARE.value * memory_bytes()[1]))


class ProcessMemory:
    """The memory of one process around its profiler sessions.

    Args:
        rss: Returns the resident memory, bytes; None if unknown.
        peak: Returns the largest resident memory so far, bytes.
        give_back: Gives free memory back to the system.
        room: Returns by how much the process may grow while it is profiled before memory is given back, bytes.
    """

    def __init__(
        self,
        rss: Callable[[], int | None] = rss_bytes,
        peak: Callable[[], int] = peak_rss_bytes,
        give_back: Callable[[], None] = trim,
        room: Callable[[], int] = _profile_room,
    ) -> None:
        self._rss, self._peak, self._give_back, self._find_room = rss, peak, give_back, room
        self._lock = threading.Lock()
        self._is_profiled = False
        self._before: int | None = None
        """The peak outside profiled stretches; None as long as there was none, and the system's peak is that of the script."""
        self._started_at = self._looked_at = self._room = 0
        """Memory at the start of the session, and when memory was last given back since then; how much it may grow."""

    @property
    def peak_bytes(self) -> int:
        """Largest resident memory outside profiled stretches.

        After the first of them, it is the largest of looks a fraction of a second apart.
        """
        self.look()
        return self._peak() if self._before is None else self._before

    def before_profile(self) -> None:
        """Note that the profiler is about to start."""
        with self._lock:
            rss = self._rss()
            if rss is None:
                return
            self._before = self._peak() if self._before is None else max(self._before, rss)
            self._started_at = self._looked_at = rss
            self._room = self._find_room()
            self._is_profiled = True

    def after_profile(self) -> None:
        """Note that the profile has been written."""
        with self._lock:
            if not self._is_profiled:
                return
            self._is_profiled = False
            if (self._rss() or 0) - self._started_at >= TRIM_FROM_BYTES.value:
                self._give_back()
            self._before = max(self._before or 0, self._rss() or 0)

    def look(self) -> None:
        """Note how large the process is, or if it has grown too much while it is profiled, give memory back."""
        if self._before is None or not self._lock.acquire(blocking=False):
            return
        try:
            rss = self._rss() or 0
            if not self._is_profiled:
                self._before = max(self._before, rss)
            elif rss - self._looked_at > self._room:
                self._give_back()
                self._looked_at = self._rss() or rss
        finally:
            self._lock.release()
