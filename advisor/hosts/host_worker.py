"""A child process that analyses hosts until its input ends.

In: `Job`s.  Out: for each job, a `HostPart` or a sentence with the reason why there is none.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from advisor.graph import HostPart, analyse_host
from advisor.host import worker_process
from advisor.host.worker_process import WorkerEnded, WorkerProcess
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


class HostWorker:
    """A process that analyses hosts."""

    def __init__(self) -> None:
        """Start the process.

        Raises:
            OSError: It cannot be started.
        """
        self._process = WorkerProcess(__name__)

    def work(self, job: Job) -> Result:
        """Run `work` in the process. If the process ends, return a sentence; the next call starts a new one."""
        try:
            return cast(Result, self._process.ask(job))
        except WorkerEnded as ended:
            reason = "probably out of memory" if ended.code == -signal.SIGKILL else f"exit code {ended.code}"
            return f"{job.path} could not be read: its process was ended ({reason})."

    def close(self) -> None:
        """Kill the process."""
        self._process.close()


def serve() -> None:
    """Answer jobs in the process. Ctrl-C ends it without a message."""
    worker_process.serve(work, signal.SIG_DFL)
