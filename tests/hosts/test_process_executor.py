"""The processes that analyse hosts end with their parent, even if it is killed and can clean nothing up."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

PARENT = """
import os, time
from advisor.hosts.process_executor import ProcessExecutor
executor = ProcessExecutor(2)
print(executor.submit(os.getpid).result(), flush=True)
executor.submit(time.sleep, 60)
executor.submit(os.getpid).result()
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs Linux' /dev/shm")
def test_nothing_is_left_of_a_command_that_was_killed():
    """One of two workers is idle; loky's own processes and semaphores go, too."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as parent:
        assert parent.stdout is not None
        worker, number = int(parent.stdout.readline()), int(parent.stdout.readline())
        started = psutil.Process(number).children(recursive=True)
        assert worker in [process.pid for process in started] and len(started) >= 2
        assert semaphores_of(number)
        parent.kill()
    deadline = time.monotonic() + 10
    while any(map(is_alive, started)) or semaphores_of(number):
        assert time.monotonic() < deadline, "a worker outlives its parent"
        time.sleep(0.02)


def is_alive(process: psutil.Process) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def semaphores_of(process: int) -> list[Path]:
    """The semaphores that a process has made with loky."""
    return list(Path("/dev/shm").glob(f"sem.loky-{process}-*"))
