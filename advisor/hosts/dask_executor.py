"""Runs the analysis of hosts on a Dask cluster.

In: the address of a scheduler, functions and their arguments.  Out: futures.

`distributed` (the extra `tfdata-advisor[cluster]`) is imported when a cluster is named. The profiles are read by the workers.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from advisor.host.calibration.hosts import (
    BASE_BYTES,
    BYTES_PER_BYTE,
    CHECK_S,
    CLOSE_S,
    CONNECT_S,
    LOST_S,
    RUNNING_PER_THREAD,
)
from advisor.hosts.executors import EngineLost, HostExecutor, P, T, WorkerLost
from advisor.model.errors import AdvisorError
from advisor.model.text import message_of
from advisor.model.units import format_bytes

if TYPE_CHECKING:
    from distributed import Client

MEMORY = "MEMORY"
"""Name of the resource by which Dask bounds the work on a worker (`dask worker --resources MEMORY=16e9`), in bytes."""
_ADDRESS = re.compile(r"dask://(\[[0-9a-fA-F:.]+\]|[^/:\s]+):(\d{1,5})/?")
_EXTRA = "pip install 'tfdata-advisor[cluster]'"
_DISTRIBUTION = "tfdata-advisor"
_UNLIMITED = 1 << 62


def check_engine(engine: str) -> str:
    """Return the address `HOST:PORT` of an engine `dask://HOST:PORT`.

    Raises:
        AdvisorError: It has another form.
    """
    match = _ADDRESS.fullmatch(engine)
    if match is None or int(match[2]) > 65_535:
        raise AdvisorError(f"There is no engine {engine}: name the scheduler of a Dask cluster as dask://HOST:PORT.")
    return f"{match[1]}:{match[2]}"


class DaskExecutor(HostExecutor):
    """The workers of a Dask cluster.

    Args:
        engine: The scheduler, as `dask://HOST:PORT`.

    Raises:
        AdvisorError: `distributed` is not installed, the scheduler does not answer, there is no worker, or versions differ.
    """

    def __init__(self, engine: str) -> None:
        self._address = check_engine(engine)
        _check_package(engine)
        self._levels = _silence()
        self._is_closing = threading.Event()
        self._pending: set[Future[Any]] = set()
        self._lock = threading.Lock()
        try:
            self._client = _connect(self._address)
        except BaseException:
            _restore(self._levels)
            raise
        try:
            workers = self._workers()
            if not workers:
                raise AdvisorError(
                    f"The Dask scheduler at {self._address} has no worker: start some with `dask worker {self._address}`."
                )
            _check_versions(self._client, self._address)
        except BaseException:
            self.shutdown()
            raise
        self.max_running = _running(workers)
        offered = [worker.get("resources", {}).get(MEMORY) for worker in workers.values()]
        self._most_memory = max(offered) if all(offered) else None
        limits = [int(worker.get("memory_limit") or 0) for worker in workers.values()]
        self.max_bytes = (
            sum(limits) // BYTES_PER_BYTE.value if self._most_memory is None and all(limits) else _UNLIMITED
        )
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a function of a module on a worker."""
        return self.submit_with({}, fn, *args, **kwargs)

    def reading(self, num_bytes: int) -> HostExecutor:
        """Return the executor for functions that need the memory to read a profile of this size."""
        needed = BASE_BYTES.value + BYTES_PER_BYTE.value * num_bytes
        return self if self._most_memory is None else _WithMemory(self, needed, self._most_memory)

    def submit_with(
        self, resources: Mapping[str, float], fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> Future[T]:
        """Run a function on a worker that has the resources left.

        Args:
            resources: Dask resource -> amount that the call takes from its worker until it ends; empty: any worker runs it.
            fn: A function that the workers can import by its name.
            *args: Its positional arguments, which must be picklable.
            **kwargs: Its keyword arguments, which must be picklable.

        Returns:
            A future that raises what the function raised, `WorkerLost` or `EngineLost`.
        """
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            self._pending.add(future)
        try:
            # pure=False: two calls with the same arguments are two tasks, so a file that changed is read again
            executor = self._client.get_executor(pure=False, **({"resources": dict(resources)} if resources else {}))
            inner = executor.submit(fn, *args, **kwargs)
        except Exception as error:
            self._answer(future, error=self._lost(message_of(error)))
            return future
        inner.add_done_callback(lambda done: self._pass_on(done, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; its other work goes on."""
        del wait, cancel_futures
        self._is_closing.set()
        with suppress(Exception):
            self._client.close(timeout=CLOSE_S.value)
        _restore(self._levels)

    def _pass_on(self, inner: Future[T], future: Future[T]) -> None:
        """Pass the outcome of Dask's future on, in the terms of `HostExecutor`."""
        try:
            self._answer(future, inner.result())
        except CancelledError:  # nothing here cancels, so the client has lost its scheduler
            self._answer(future, error=self._lost())
        except Exception as error:
            self._answer(future, error=self._translated(error))

    def _translated(self, error: Exception) -> Exception:
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            times = error.allowed_failures + 1
            return WorkerLost(
                f"{times} Dask workers ended while they read it, probably out of memory", is_certain=False
            )
        if isinstance(error, OSError) and self._client.status != "running":
            return self._lost()
        return WorkerLost(f"its Dask worker failed ({type(error).__name__}: {message_of(error)})", is_certain=False)

    def _lost(self, reason: str = "") -> EngineLost:
        return EngineLost(f"The Dask scheduler at {self._address} was lost{f' ({reason})' if reason else ''}.")

    def _answer(self, future: Future[T], result: T | None = None, error: Exception | None = None) -> None:
        with self._lock:
            self._pending.discard(future)
        with suppress(InvalidStateError):  # given up before
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # None may be the result

    def _workers(self) -> Mapping[str, Any]:
        workers: Mapping[str, Any] = self._client.scheduler_info(n_workers=-1)["workers"]
        return workers

    def _watch(self) -> None:
        """Give up what is pending if there is no worker, or no answer, for too long; Dask would wait forever."""
        alive = time.monotonic()
        reason = ""
        while not self._is_closing.wait(CHECK_S.value):
            if self._client.status != "running":  # it has cancelled everything, but an answer on its way hangs
                self._give_up("")
                continue
            try:
                workers = self._workers()
                reason = "it has no worker left"
                if workers:
                    alive = time.monotonic()
                    self.max_running = _running(workers)  # more may join
            except Exception:
                reason = "it does not answer"
            if time.monotonic() - alive > LOST_S.value:
                self._give_up(reason)

    def _give_up(self, reason: str) -> None:
        with self._lock:
            pending = tuple(self._pending)
        for future in pending:
            self._answer(future, error=self._lost(reason))


class _WithMemory(HostExecutor):
    """The same cluster, for functions that need so much memory."""

    def __init__(self, cluster: DaskExecutor, needed: int, most: float) -> None:
        self.max_running, self.max_bytes = cluster.max_running, cluster.max_bytes
        self._cluster, self._needed, self._most = cluster, needed, most

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if self._needed <= self._most:
            return self._cluster.submit_with({MEMORY: self._needed}, fn, *args, **kwargs)
        future: Future[T] = Future()
        text = f"it needs about {format_bytes(self._needed)} of memory, and no worker offers more than"
        future.set_exception(WorkerLost(f"{text} {format_bytes(round(self._most))}", is_certain=True))
        return future


def _running(workers: Mapping[str, Any]) -> int:
    return RUNNING_PER_THREAD.value * sum(int(worker["nthreads"]) for worker in workers.values())


def _check_package(engine: str) -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise AdvisorError(f"--engine {engine} needs the package distributed: {_EXTRA}.") from None


def _connect(address: str) -> Client:
    """Connect to a scheduler and wait for its first worker."""
    from distributed import Client

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # different versions are an error below
            client = Client(address, timeout=CONNECT_S.value, set_as_default=False)
    except ImportError as error:
        raise AdvisorError(f"The Dask scheduler at {address} has another version ({message_of(error)}).") from None
    except OSError:
        raise AdvisorError(
            f"The Dask scheduler at {address} did not answer within {CONNECT_S.value} s: check the address, and that"
            " `dask scheduler` runs there."
        ) from None
    except Exception as error:  # something else listens there
        raise AdvisorError(
            f"There is no Dask scheduler at {address} ({type(error).__name__}: {message_of(error)})."
        ) from None
    with suppress(Exception):  # without a worker, the next check has the better sentence
        client.wait_for_workers(1, timeout=CONNECT_S.value)
    return client


def _check_versions(client: Client, address: str) -> None:
    """Refuse a cluster with other versions, in which pickled objects may have another meaning."""
    versions: Mapping[str, Any] = client.get_versions(packages=[_DISTRIBUTION])
    own = versions["client"]["packages"]
    others = [(f"scheduler at {address}", versions["scheduler"])]  # which loads the functions as well
    others += [(f"worker {name}", worker) for name, worker in sorted(versions["workers"].items())]
    for where, other in others:
        packages = other["packages"]
        for name in ("python", "dask", "distributed", _DISTRIBUTION):
            here, there = _significant(name, own[name]), _significant(name, packages.get(name))
            if here != there:
                has = f"has {name} {there}" if there else f"lacks {name}"
                raise AdvisorError(f"The Dask {where} {has}, and this machine has {here}: install the same versions.")


def _significant(name: str, version: str | None) -> str:
    """The part of a version that must be equal: of Python only 3.x."""
    return ".".join((version or "").split(".")[:2]) if name == "python" else version or ""


def _silence() -> dict[logging.Logger, int]:
    """Silence the loggers of Dask, which print tracebacks for what is one sentence here; returns their levels."""
    import distributed.config  # noqa: F401  which sets these levels

    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado")]
    loggers = {logger: logger.level for name in names if (logger := logging.getLogger(name))}
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    return loggers


def _restore(levels: Mapping[logging.Logger, int]) -> None:
    for logger, level in levels.items():
        logger.setLevel(level)
