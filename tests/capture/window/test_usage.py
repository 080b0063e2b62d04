"""What the process used between two instants."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from advisor.capture.window.usage import LockProbe, Snapshot, usage_between

pytestmark = pytest.mark.timed  # a probe of half a second sees what other tests do on the cores


def test_cpu_time_and_wall_time():
    start = Snapshot.take()
    end_at = time.monotonic() + 0.3
    while time.monotonic() < end_at:
        pass
    usage = usage_between(start, Snapshot.take(), None, 2 << 20)
    assert 0.29e9 < usage.wall_ns < 5e9 and 0.05e9 < usage.cpu_ns <= usage.wall_ns * 1.2
    assert usage.peak_rss_bytes > 1 << 20 and usage.gil_wait_share is None
    assert 0 < usage.host_cpu_busy_share <= 1 if sys.platform == "linux" else usage.host_cpu_busy_share is None


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="needs Linux")
def test_waits_for_a_core_are_those_of_threads_that_want_to_run():
    """Two processes share one core, so each wants it while the other has it; the threads that sleep want none."""
    script = (
        "import os, threading, time\n"
        "from advisor.capture.window.usage import Snapshot, usage_between\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "threading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
        "other = os.fork()\n"
        "end_at = time.monotonic() + 3\n"
        "start = Snapshot.take()\n"
        "while time.monotonic() < end_at: pass\n"
        "if not other: os._exit(0)\n"
        "usage = usage_between(start, Snapshot.take(), None, 2 << 20)\n"
        "os.waitpid(other, 0)\n"
        "print(usage.core_wait_ns / usage.wall_ns)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.3 < float(done.stdout) < 1.0


def probe(seconds: float) -> float:
    lock_probe = LockProbe()
    lock_probe.start()
    time.sleep(seconds)
    share = lock_probe.stop()
    assert share is not None
    return share


def test_the_lock_probe_sees_a_thread_that_computes_in_python():
    idle = probe(0.4)
    stop = threading.Event()

    def hold() -> None:
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        held = probe(0.6)
    finally:
        stop.set()
        thread.join()
    assert idle < 0.1 < 0.2 < held


def test_too_short_to_say():
    lock_probe = LockProbe()
    lock_probe.start()
    assert lock_probe.stop() is None
