"""What the process used between two instants."""

from __future__ import annotations

import threading
import time

from advisor.capture.window.usage import LockProbe, Snapshot, usage_between


def test_cpu_time_and_wall_time():
    start = Snapshot.take()
    end_at = time.monotonic() + 0.3
    while time.monotonic() < end_at:
        pass
    usage = usage_between(start, Snapshot.take(), None)
    assert 0.29e9 < usage.wall_ns < 5e9 and 0.05e9 < usage.cpu_ns <= usage.wall_ns * 1.2
    assert usage.peak_rss_bytes > 1 << 20 and usage.gil_wait_share is None
    assert usage.host_cpu_busy_share is None or 0 <= usage.host_cpu_busy_share <= 1


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
