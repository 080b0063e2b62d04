"""A process that answers one call after the other: loky's process pool with a single worker.

In: functions of modules and their arguments.  Out: what they return or raise, or `WorkerEnded`.

loky does not import the user's own script in a worker, as `multiprocessing` does. A pool is lost with any of its workers; with
one worker each, a process that dies takes nothing with it but the call that it answered. `worker_side` runs in the process.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from advisor.host import worker_side
from advisor.model.text import reason_of

P = ParamSpec("P")
T = TypeVar("T")


class WorkerEnded(Exception):
    """The process ended instead of answering."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code
        """Its exit code; negative if a signal ended it."""


class WorkerNotStarted(Exception):
    """No process could be started; the message is the reason, without a full stop."""


class WorkerProcess:
    """A worker process. It is started for the first call, and again for the next call after it has ended.

    Args:
        on_interrupt: `SIG_DFL` if Ctrl-C ends the process, `SIG_IGN` if the parent does.
    """

    def __init__(self, on_interrupt: signal.Handlers = signal.SIG_DFL) -> None:
        self._on_interrupt = on_interrupt
        self._pool: _Pool | None = None
        self._guard = threading.Lock()
        """Of `_pool`."""

    def ask(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function of a module in the process. One thread may ask at a time, and any may close.

        Args:
            work: A function that the process can import by its name.
            *args: Its positional arguments, which must be picklable.
            **kwargs: Its keyword arguments, which must be picklable.

        Returns:
            What the function returns. What it raises is raised here, too.

        Raises:
            WorkerEnded: The process ended first.
            WorkerNotStarted: No process could be started.
        """
        call: worker_side.Call = (work, args, kwargs)
        data = pickle.dumps(call)
        try:
            answer = self._running_pool().answer(data)
        except BaseException:  # Ctrl-C, too: the process must not go on with this call
            self.close()
            raise
        result, raised = pickle.loads(answer)
        if raised is not None:
            raise raised
        value: T = result
        return value

    def close(self) -> None:
        """Kill the process, and those that it has started."""
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _running_pool(self) -> _Pool:
        with self._guard:
            if self._pool is not None and self._pool.exit_code is not None:  # it died after its last answer
                self._pool.close()
                self._pool = None
            if self._pool is None:
                self._pool = _Pool(self._on_interrupt)
            return self._pool


class _Pool:
    """A pool of loky with one worker, which is never replaced."""

    def __init__(self, on_interrupt: signal.Handlers) -> None:
        self._guard = threading.Lock()
        self._process: Any = None
        self._executor: Any = None
        try:
            self._executor = self._make_executor(on_interrupt)
        except Exception as error:
            raise WorkerNotStarted(reason_of(error)) from None

    @property
    def exit_code(self) -> int | None:
        """The exit code of the process; None if it runs or was not started."""
        code: int | None = None if self._process is None else self._process.exitcode
        return code

    def answer(self, call: bytes) -> bytes:
        """Return the answer to a call; see `WorkerProcess.ask`."""
        from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        try:
            return self._submit(call).result()
        except (BrokenProcessPool, ShutdownExecutorError):
            self.close()
            code = self.exit_code
            raise WorkerEnded(_KILLED if code is None else code) from None

    def close(self) -> None:
        """Kill the process and wait for its end."""
        with self._guard:
            executor, self._executor = self._executor, None
            if executor is not None:
                executor.shutdown(wait=True, kill_workers=True)

    def _submit(self, call: bytes) -> Future[bytes]:
        from loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        with self._guard:
            if self._executor is None:
                raise WorkerEnded(_KILLED)
            try:
                with _starting():
                    future: Future[bytes] = self._executor.submit(worker_side.answer, call)
            except (BrokenProcessPool, ShutdownExecutorError):
                raise
            except Exception as error:
                raise WorkerNotStarted(reason_of(error)) from None
            # loky keeps the worker's ends of its pipes open here, and would wait for the rest of what a dead worker began to send
            self._executor._call_queue._reader.close()
            self._executor._result_queue._writer.close()
            _close_at_exit(self)
            return future

    def _make_executor(self, on_interrupt: signal.Handlers) -> object:
        from loky import ProcessPoolExecutor
        from loky.backend.context import LokyContext

        _start_trackers()
        context = LokyContext()
        context.Process = self._make_process
        return ProcessPoolExecutor(
            1,
            context=context,
            initializer=worker_side.prepare,
            initargs=(os.getpid(), on_interrupt),
            env=_environment(),
        )

    def _make_process(self, *args: object, **kwargs: object) -> object:
        """Keep the process, which alone knows its exit code."""
        from loky.backend.process import LokyProcess

        self._process = LokyProcess(*args, **kwargs)
        return self._process


_KILLED = -int(getattr(signal, "SIGKILL", 9))
_POOLS: weakref.WeakSet[_Pool] = weakref.WeakSet()
"""Those to close at exit."""
_IS_HOOKED = threading.Event()
_HAS_TRACKERS = threading.Event()
_TRACKERS = threading.Lock()


def _environment() -> dict[str, str]:
    """Return the variables of a worker that differ from those of this process."""
    root = str(Path(__file__).parents[2])
    return {
        "PYTHONPATH": os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "PYTHONSAFEPATH": "1",  # a `numpy.py` in the current folder is not NumPy
        "OPENBLAS_NUM_THREADS": "1",
        "LOKY_MAX_MEMORY_LEAK_SIZE": "1e18",  # a worker that has grown is not replaced: the next profile may need as much
    }


def _start_trackers() -> None:
    """Start the two processes that remove the semaphores of a parent that was killed; they last as long as this process.

    loky would start them with the current folder on their import path, and code of a folder that is only read must not run.
    They can get a variable only through the environment of this process.
    """
    from multiprocessing import resource_tracker as pythons

    from loky.backend import resource_tracker as lokys

    with _TRACKERS:
        if _HAS_TRACKERS.is_set():
            return
        before = os.environ.get("PYTHONSAFEPATH")
        os.environ["PYTHONSAFEPATH"] = "1"
        try:
            lokys.ensure_running()
            if os.name == "posix":
                pythons.ensure_running()
        finally:
            del os.environ["PYTHONSAFEPATH"]
            if before is not None:
                os.environ["PYTHONSAFEPATH"] = before
        _HAS_TRACKERS.set()


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Prepare this thread for the start of a process in the block.

    SIGINT is blocked, also in that process, where `worker_side.prepare` unblocks it. A worker of `multiprocessing.Pool` may start
    one, too: Python forbids that because children would outlive such a parent, but ours end with it.
    """
    import multiprocessing

    parent = multiprocessing.current_process()
    is_daemon = parent.daemon
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        if is_daemon:
            parent.daemon = False
        yield
    finally:
        if is_daemon:
            parent.daemon = True
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _close_at_exit(pool: _Pool) -> None:
    """Kill the process of a pool before loky waits for its call at exit."""
    _POOLS.add(pool)
    if not _IS_HOOKED.is_set():
        _IS_HOOKED.set()
        # `atexit` would be too late: the hook of loky comes first, and these are called in reverse order
        threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def _close_all() -> None:
    for pool in list(_POOLS):
        pool.close()
