"""The processes that analyse hosts end with their parent, even if it is killed and can clean nothing up."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, time
from advisor.hosts.process_executor import ProcessExecutor
executor = ProcessExecutor(1)
print(executor.submit(os.getpid).result(), flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux' /proc")
def test_no_process_is_left_of_a_command_that_was_killed():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.kill()
    deadline = time.monotonic() + 10
    while is_alive(worker):
        assert time.monotonic() < deadline, "the worker outlives its parent"
        time.sleep(0.02)


def is_alive(process: int) -> bool:
    """Whether the process runs; one that has ended and that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
