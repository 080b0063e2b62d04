"""Executors and workers that fail, for tests: in a process of their own, where nothing can be patched.

A file whose name contains `poison` ends the worker that reads it, as one does that does not fit into the memory.
"""

from __future__ import annotations

import os
import signal

from advisor.hosts.executors import HostExecutor
from advisor.hosts.host_jobs import analyse_group


def analyse_or_die(paths, first, recording):
    if any("poison" in path.name for path in paths):
        os.kill(os.getpid(), signal.SIGKILL)
    return analyse_group(paths, first, recording)


class Poisoned(HostExecutor):
    """Another executor, with the function above in place of the analysis."""

    def __init__(self, inner: HostExecutor) -> None:
        self._inner = inner
        self.max_running, self.max_bytes = inner.max_running, inner.max_bytes

    def submit(self, fn, /, *args, **kwargs):
        return self._inner.submit(analyse_or_die if fn is analyse_group else fn, *args, **kwargs)

    def shutdown(self, wait=True, *, cancel_futures=False):
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


class Watched(HostExecutor):
    """Runs everything in this process when it is waited for, and remembers how much was submitted at the same time."""

    def __init__(self, max_running: int, max_bytes: int) -> None:
        self.max_running, self.max_bytes = max_running, max_bytes
        self.most = 0
        self.groups: list[tuple[str, ...]] = []

    def submit(self, fn, /, *args, **kwargs):
        from concurrent.futures import Future
        from threading import Timer

        future = Future()
        self._running = getattr(self, "_running", 0) + 1
        self.most = max(self.most, self._running)
        self.groups.append(tuple(path.name.partition(".")[0] for path in args[0]))

        def work():
            result = fn(*args, **kwargs)
            self._running -= 1
            future.set_result(result)

        Timer(0.02, work).start()
        return future
