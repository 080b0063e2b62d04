"""Finds and ends the processes of a run by an environment variable, independently of their parents.

In: the value of the variable.  Out: process ids. This works on Linux only; on other systems no processes are found.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MARKER = "TFDATA_ADVISOR_RUN"
"""Environment variable of all processes of a run: `<command>/<number of the run>`."""


def processes_of(marker: str) -> list[int]:
    """Return the ids of living processes with this marker.

    Args:
        marker: Marker of a run, or its first part, which selects all runs of a command.
    """
    variable = f"{MARKER}={marker}".encode()
    pids = []
    with contextlib.suppress(OSError):
        for name in [path.name for path in Path("/proc").iterdir()]:
            if name.isdigit() and int(name) != os.getpid() and _is_marked(name, variable):
                pids.append(int(name))
    return pids


def end_processes(marker: str, grace_s: float) -> int:
    """End the remaining processes of a run with SIGTERM and, half a second later, SIGKILL.

    Args:
        marker: As in `processes_of`.
        grace_s: Time for the processes to end by themselves first.

    Returns:
        The number of processes that did not end by themselves.
    """
    left = _wait(marker, grace_s)
    count = len(left)
    for signal_number in (signal.SIGTERM, signal.SIGKILL, signal.SIGKILL):
        if not left:
            break
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal_number)
        left = _wait(marker, 0.5)
    return count


def _wait(marker: str, seconds: float) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := processes_of(marker)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _is_marked(pid: str, variable: bytes) -> bool:
    folder = Path("/proc") / pid
    try:
        if not any(
            part == variable or part.startswith(variable + b"/")
            for part in (folder / "environ").read_bytes().split(b"\0")
        ):
            return False
        return b") Z " not in (folder / "stat").read_bytes()
    except OSError:
        return False
