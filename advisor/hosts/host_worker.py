"""A child process that analyses hosts until its input ends.

In: pickled `Job`s on stdin.  Out: for each job, a pickled `HostPart` or a sentence with the reason why there is none, on stdout.

`multiprocessing` is not used because it would import the user's script again in every worker.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from advisor.graph import HostPart, analyse_host
from advisor.model.errors import AdvisorError
from advisor.model.recording import Recording
from advisor.profile import read_host

Result = HostPart | str
"""The part of a host, or a sentence with the reason why it could not be read."""


@dataclass(frozen=True, slots=True)
class Job:
    """One host to analyse."""

    path: Path
    recording: Recording | None


def work(job: Job) -> Result:
    """Read and analyse one host. The trace is freed before the function returns."""
    try:
        return analyse_host(read_host(job.path), job.recording)
    except AdvisorError as error:
        return str(error)
    except MemoryError:
        return f"{job.path} does not fit into the free memory: read it on a larger machine."


class WorkerProcess:
    """The parent's end of a worker process."""

    def __init__(self) -> None:
        """Start the process.

        Raises:
            OSError: It cannot be started.
        """
        root = str(Path(__file__).parents[2])
        paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
        # -P: a `numpy.py` in the current folder must not replace NumPy
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
        )

    def work(self, job: Job) -> Result:
        """Run `work` in the process. If the process died, this call returns a sentence; the next call starts a new one."""
        try:
            pickle.dump(job, self._pipe(self._process.stdin))
            self._pipe(self._process.stdin).flush()
            return cast(Result, pickle.load(self._pipe(self._process.stdout)))
        except (OSError, EOFError, pickle.UnpicklingError):
            code = self._process.wait()
            reason = "probably out of memory" if code == -signal.SIGKILL else f"exit code {code}"
            self.__init__()  # type: ignore[misc]
            return f"{job.path} could not be read: its process was ended ({reason})."

    def close(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe


def serve() -> None:
    """Answer jobs until stdin ends. Output of libraries goes to stderr, because stdout carries the answers."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends it without a traceback
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(work(job), answers)
        answers.flush()
