"""A child process that answers pickled jobs, one after the other.

In: jobs. Out: answers. The child imports a module and calls its `serve()`, which passes a function to `serve` here.

This is a plain child process instead of `multiprocessing`, which would import the user's own script again in every worker.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


class WorkerEnded(Exception):
    """The process ended instead of answering."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code
        """Its exit code; negative if a signal ended it."""


class WorkerProcess:
    """The parent's end of a worker process. It is started for the first job, and again for the next job after it has ended.

    Args:
        module: The module whose `serve()` answers the jobs.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, job: object) -> Any:  # noqa: ANN401
        """Send a job and return its answer.

        Raises:
            WorkerEnded: The process ended first.
            OSError: The process cannot be started.
        """
        process = self._process = self._process or self._start()
        data = pickle.dumps(job)
        try:
            _pipe(process.stdin).write(data)
            _pipe(process.stdin).flush()
            return pickle.load(_pipe(process.stdout))
        except (OSError, EOFError, pickle.UnpicklingError, AttributeError, ImportError):
            with contextlib.suppress(OSError):
                _pipe(process.stdin).close()  # a process that is still alive ends, as there are no more jobs
            code = process.wait()
            self.close()
            raise WorkerEnded(code) from None
        except BaseException:  # Ctrl-C: a late answer must not be read as that of the next job
            self.close()
            raise

    def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                _pipe(pipe).close()

    def _start(self) -> subprocess.Popen[bytes]:
        root = str(Path(__file__).parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        # -P: a `numpy.py` in the current folder is not NumPy
        return subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {self._module} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
        )


def serve(work: Callable[[Any], object], on_interrupt: signal.Handlers) -> None:
    """Answer jobs until stdin ends. What the work prints goes to stderr, because stdout carries the answers.

    Args:
        work: Returns the answer to a job.
        on_interrupt: `SIG_DFL` if Ctrl-C ends the process, `SIG_IGN` if the parent does.
    """
    signal.signal(signal.SIGINT, on_interrupt)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    jobs = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, sys.stdin.fileno())  # work that reads stdin must not consume jobs
    while True:
        try:
            job = pickle.load(jobs)
        except EOFError:
            return
        answer = work(job)
        sys.stdout.flush()
        pickle.dump(answer, answers)
        answers.flush()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
