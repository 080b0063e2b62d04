"""The interface between the analysis of many hosts and the engine that runs it: `concurrent.futures.Executor` and two limits.

In: functions of `host_jobs`.  Out: futures of their results.

The code that hands out the work does not know which engine it has. `InThisProcess` serves small runs, `process_executor` several
cores and `dask_executor` a cluster.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

from advisor.model.errors import AdvisorError

P = ParamSpec("P")
T = TypeVar("T")


class WorkerLost(Exception):
    """A worker ended while it ran a function.

    Args:
        reason: A clause that follows the name of a file and ends without a full stop.
        is_certain: Whether this function ended it, and not another one that ran on the same worker.
    """

    def __init__(self, reason: str, is_certain: bool) -> None:
        super().__init__(reason, is_certain)
        self.reason = reason
        self.is_certain = is_certain


class EngineLost(AdvisorError):
    """The engine ended; nothing that it was asked for will be answered. The message is a sentence that names it."""


class HostExecutor(Executor):
    """An engine that runs the analysis of hosts.

    A future raises what the function raised, `WorkerLost` if its worker ended, or `EngineLost`.
    """

    max_running: int
    """Number of functions to submit at the same time: enough to keep all workers busy."""
    max_bytes: int
    """Maximum size of the profiles that are read at the same time; a single one may be larger."""

    @abstractmethod
    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function on a worker.

        Args:
            fn: A function that the workers can import by its name.
            *args: Its positional arguments, which must be picklable.
            **kwargs: Its keyword arguments, which must be picklable.
        """
        raise NotImplementedError

    def reading(self, num_bytes: int) -> HostExecutor:
        """Return the executor for functions that read profiles of this size, one at a time.

        Args:
            num_bytes: Unpacked size of the largest one.
        """
        del num_bytes
        return self


class InThisProcess(HostExecutor):
    """Runs each function at once, in this process."""

    max_running = 1
    max_bytes = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function; the future is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future
