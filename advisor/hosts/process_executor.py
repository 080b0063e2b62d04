"""Runs the analysis of hosts in child processes of this machine.

In: functions and their arguments.  Out: futures.

The standard library's pool and loky import the user's own script in every worker or leave processes behind when the parent is
killed; `WorkerProcess` does neither. A process that dies takes nothing with it but the function that it ran.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from advisor.host import worker_process
from advisor.host.worker_process import WorkerEnded, WorkerProcess
from advisor.hosts.executors import HostExecutor, P, T, WorkerLost

MAX_BYTES_IN_FLIGHT = 64 << 20
"""Maximum total size of the files that are read at the same time, unless a single file is larger."""


@dataclass(frozen=True, slots=True)
class _Raised:
    """What a function raised in the process."""

    error: Exception


class ProcessExecutor(HostExecutor):
    """Child processes, one function at a time each. A process is started when it is first needed.

    Args:
        num_workers: Number of processes.
    """

    max_bytes = MAX_BYTES_IN_FLIGHT

    def __init__(self, num_workers: int) -> None:
        self.max_running = num_workers
        self._workers = [WorkerProcess(__name__) for _ in range(num_workers)]
        self._idle: SimpleQueue[WorkerProcess] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(num_workers)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function of a module in a process."""
        return self._threads.submit(self._ask, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill the processes; functions that still run raise `WorkerLost`."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.close()
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)

    def _ask(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
        worker = self._idle.get()
        try:
            answer = worker.ask((fn, args, kwargs))
        except WorkerEnded as ended:
            reason = "probably out of memory" if ended.code == -signal.SIGKILL else f"exit code {ended.code}"
            raise WorkerLost(f"its process was ended ({reason})", is_certain=True) from None
        except OSError as error:
            raise WorkerLost(f"no process could be started ({error.strerror or error})", is_certain=True) from None
        finally:
            self._idle.put(worker)
        if isinstance(answer, _Raised):
            raise answer.error
        result: T = answer
        return result


def _run(job: tuple[Callable[..., object], tuple[Any, ...], dict[str, Any]]) -> object:
    function, args, kwargs = job
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return _Raised(error)


def serve() -> None:
    """Answer jobs in the process. Ctrl-C ends it without a message."""
    worker_process.serve(_run, signal.SIG_DFL)
