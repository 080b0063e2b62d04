"""Runs the analysis of hosts in child processes of this machine.

In: functions and their arguments.  Out: futures.

Each process is a pool of its own (`WorkerProcess`), so one that dies takes nothing with it but the function that it ran.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

from advisor.host.worker_process import WorkerEnded, WorkerNotStarted, WorkerProcess
from advisor.hosts.executors import HostExecutor, P, T, WorkerLost

MAX_BYTES_IN_FLIGHT = 64 << 20
"""Maximum total size of the files that are read at the same time, unless a single file is larger."""


class ProcessExecutor(HostExecutor):
    """Child processes, one function at a time each. A process is started when it is first needed.

    Args:
        num_workers: Number of processes.
    """

    max_bytes = MAX_BYTES_IN_FLIGHT

    def __init__(self, num_workers: int) -> None:
        self.max_running = num_workers
        self._workers = [WorkerProcess() for _ in range(num_workers)]
        self._idle: SimpleQueue[WorkerProcess] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(num_workers)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function of a module in a process."""
        return self._threads.submit(self._ask, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill the processes; functions that still run raise `WorkerLost`."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _ask(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        worker = self._idle.get()
        try:
            return worker.ask(fn, *args, **kwargs)
        except WorkerEnded as ended:
            is_killed = ended.code == -getattr(signal, "SIGKILL", 9)
            reason = "probably out of memory" if is_killed else f"exit code {ended.code}"
            raise WorkerLost(f"its process was ended ({reason})", is_certain=True) from None
        except WorkerNotStarted as error:
            raise WorkerLost(f"no process could be started ({error})", is_certain=True) from None
        finally:
            self._idle.put(worker)
