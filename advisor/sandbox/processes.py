"""Processes of a run, found by a variable in their environment, whoever their parent is by now.

In: the variable's value.  Out: process ids; the processes end. Linux only: elsewhere nothing is found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARKER = "TFDATA_ADVISOR_RUN"
"""Environment of every process of a run: `<command>/<number of the run>`."""


def processes_of(marker: str) -> list[int]:
    """Ids of living processes whose marker is, or begins with, this one."""
    wanted = f"{MARKER}={marker}".encode()
    found = []
    with contextlib.suppress(OSError):
        for name in [path.name for path in Path("/proc").iterdir()]:
            if name.isdigit() and int(name) != os.getpid() and _is_marked(name, wanted):
                found.append(int(name))
    return found


def end_processes(marker: str, grace_s: float) -> int:
    """End what is left of a run: it has `grace_s` to end by itself, then SIGTERM and half a second, then SIGKILL.

    Returns the number of processes that had to be ended.
    """
    left = _wait(marker, grace_s)
    count = len(left)
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        if not left:
            break
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        left = _wait(marker, 0.5)
    return count


def _wait(marker: str, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := processes_of(marker)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _is_marked(pid: str, wanted: bytes) -> bool:
    folder = Path("/proc") / pid
    try:
        if not any(
            part == wanted or part.startswith(wanted + b"/") for part in (folder / "environ").read_bytes().split(b"\0")
        ):
            return False
        return b") Z " not in (folder / "stat").read_bytes()
    except OSError:
        return False
