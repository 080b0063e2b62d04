"""No orphans: one guard process per program that runs scripts; both halves.

In: nothing.  Out: `marker_of_next_run`, which starts the guard at first use. SIGKILL leaves a process no time to clean up, so
another one has to do it.
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
"""A run that was being started when the tool was killed shows its marker only after a moment."""
_lock = threading.Lock()
_guard: subprocess.Popen[bytes] | None = None
_owner, _marker, _runs = 0, "", 0


def marker_of_next_run() -> str:
    """A new marker for the processes of one run, watched by the guard from now on."""
    global _guard, _owner, _marker, _runs
    with _lock:
        if _owner != os.getpid():  # the first run, or a fork of a program that had some
            _owner, _marker, _runs = os.getpid(), uuid.uuid4().hex, 0
            _guard = _start(_marker)
            atexit.register(_dismiss, _owner)
        _runs += 1
        return f"{_marker}/{_runs}"


def stand_guard(parent: int, marker: str, folder: str) -> None:
    """Wait for the end of `parent`, then clean up; the guard's whole life."""
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
        return None  # the runs still die with their parent; folders are left to the next start


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
