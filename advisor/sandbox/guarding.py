"""Prevents orphan processes with a guard process; this file has both the parent's and the guard's code.

In: nothing.  Out: `marker_of_next_run`, which starts the guard on first use. A process that receives SIGKILL cannot clean up, so
the guard does it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

from advisor.sandbox.processes import end_processes, processes_of
from advisor.sandbox.temporary import remove_stale_folders

_GUARD = Path(__file__).with_name("guard.py")
_POLL_S = 0.25
_SETTLE_S = 1.0
"""Time to wait for further processes: the marker of a run that was just being started becomes visible with a delay."""
_lock = threading.Lock()
_guard: subprocess.Popen[bytes] | None = None
_owner, _marker, _runs = 0, "", 0


def marker_of_next_run() -> str:
    """Return a new marker for the processes of a run, and start the guard if it is not running."""
    global _guard, _owner, _marker, _runs
    with _lock:
        if _owner != os.getpid():  # the first run of this process, which may be a fork of one that has a guard
            _owner, _marker, _runs = os.getpid(), uuid.uuid4().hex, 0
            _guard = _start(_marker)
            atexit.register(_dismiss, _owner)
        _runs += 1
        return f"{_marker}/{_runs}"


def run_guard(parent: int, marker: str, folder: str) -> None:
    """Run the guard: wait until the parent has ended, then clean up.

    Args:
        parent: Process id of the parent.
        marker: Marker of the runs' processes.
        folder: Folder for temporary files.
    """
    if os.getppid() == parent:
        _wait_for_end(parent)
    deadline = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline:
        if processes_of(marker):
            end_processes(marker, 0.0)
            deadline = time.monotonic() + _SETTLE_S
        time.sleep(0.05)
    remove_stale_folders(Path(folder))


def _start(marker: str) -> subprocess.Popen[bytes] | None:
    command = [sys.executable, "-I", "-S", str(_GUARD), str(os.getpid()), marker, tempfile.gettempdir()]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
    except OSError:
        return None  # the runs still die with their parent, and the next start removes the folders


def _dismiss(owner: int) -> None:
    if os.getpid() == owner and _guard is not None:
        _guard.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            _guard.wait(1.0)


def _wait_for_end(parent: int) -> None:
    try:
        handle = os.pidfd_open(parent)
    except (AttributeError, OSError):
        while os.getppid() == parent:
            time.sleep(_POLL_S)
        return
    select.select([handle], [], [])
    os.close(handle)
