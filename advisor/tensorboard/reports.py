"""Makes the report of a run in a child process, and keeps finished ones.

In: a run of the logdir.  Out: its `Page`, or a `NoPage` with one sentence.

A profile may come from anybody and be of any size. Its analysis has a process of its own, with limits of time and memory, and
only one runs at a time: TensorBoard goes on whatever happens to it. A report is made again when a file of its run changes.
"""

from __future__ import annotations

import hashlib
import signal
import threading
from collections import OrderedDict
from pathlib import Path

from advisor.host.worker_process import WorkerEnded, WorkerNotStarted, WorkerProcess
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.units import NS_PER_S, format_ns
from advisor.tensorboard.report_worker import work
from advisor.tensorboard.run_finder import Run
from advisor.tensorboard.worker_messages import Job, NoPage, Page

SECONDS = 300.0
"""Longest time for one analysis. The largest known real profiles take seconds."""
MAX_KEPT_BYTES = 64 << 20
"""Size of the pages that are kept; a page has 1 to 3 MB."""
MAX_KEPT = 200
"""Pages and errors that are kept."""
MAX_WAITING = 16
"""Requests that may wait for an analysis, including the running one."""
_REPORT_NAME = "report.json"

Answer = Page | NoPage


class Reports:
    """The reports of the runs of one logdir.

    Args:
        seconds: Longest time for one analysis.
        memory_bytes: Most memory for one analysis; None for a share of the machine's.
    """

    def __init__(self, seconds: float = SECONDS, memory_bytes: int | None = None) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._kept: OrderedDict[str, tuple[str, Answer]] = OrderedDict()
        self._waiting = 0
        self._guard = threading.Lock()
        """Of `_kept` and `_waiting`."""
        self._turn = threading.Lock()
        """Held during an analysis."""
        self._worker = WorkerProcess()

    def of(self, run: Run, logdir: Path) -> Answer:
        """Return the report of a run; waits for its analysis.

        Args:
            run: The run.
            logdir: The folder that may be read, without links in its path.
        """
        version = version_of(run)
        kept = self._find(run.id, version)
        if kept is not None:
            return kept
        with self._guard:
            if self._waiting >= MAX_WAITING:
                return NoPage("Too many reports are being made: try again in a moment.", is_final=False)
            self._waiting += 1
        try:
            with self._turn:
                return self._find(run.id, version) or self._make(run, logdir, version)
        finally:
            with self._guard:
                self._waiting -= 1

    def _find(self, run_id: str, version: str) -> Answer | None:
        with self._guard:
            kept_version, answer = self._kept.get(run_id, ("", None))
            if answer is None or kept_version != version:
                return None
            self._kept.move_to_end(run_id)
            return answer

    def _make(self, run: Run, logdir: Path, version: str) -> Answer:
        answer = self._ask(Job(logdir, run.folder, run.files, self._seconds, self._memory_bytes), run.name)
        if isinstance(answer, Page) or answer.is_final:
            self._keep(run.id, version, answer)
        return answer

    def _ask(self, job: Job, name: str) -> Answer:
        try:
            return self._worker.ask(work, job)
        except WorkerEnded as ended:
            return NoPage(_why_it_ended(ended.code, job, name), is_final=False)
        except WorkerNotStarted as error:
            return NoPage(f"No process could be started to analyse {name} ({error}).", is_final=False)
        finally:
            self._worker.close()  # the next run has a fresh process, and the memory of this one is free

    def _keep(self, run_id: str, version: str, answer: Answer) -> None:
        with self._guard:
            self._kept[run_id] = version, answer
            self._kept.move_to_end(run_id)
            while len(self._kept) > 1 and (len(self._kept) > MAX_KEPT or self._size() > MAX_KEPT_BYTES):
                self._kept.popitem(last=False)

    def _size(self) -> int:
        return sum(len(answer.html) for _, answer in self._kept.values() if isinstance(answer, Page))


def version_of(run: Run) -> str:
    """Return a text that changes with the files of which a report is made."""
    owner = run.folder.parents[2] if run.files else run.folder
    facts: list[object] = []
    for path in (*run.files, owner / RECORDING_NAME, owner / _REPORT_NAME):
        try:
            fact = path.stat()
        except OSError:
            facts.append(None)
        else:
            facts.append((fact.st_ino, fact.st_size, fact.st_mtime_ns))
    return hashlib.sha256(repr((run.files, facts)).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _why_it_ended(code: int, job: Job, name: str) -> str:
    on_the_command_line = f"run `advisor analyze {job.folder}` in a terminal"
    if -code in {getattr(signal, name) for name in ("SIGALRM", "SIGXCPU") if hasattr(signal, name)}:
        limit = format_ns(job.seconds * NS_PER_S)
        return f"The analysis of {name} took longer than {limit} and was stopped: {on_the_command_line}."
    if code == -getattr(signal, "SIGKILL", 9):
        return f"The analysis of {name} was ended by the system, probably for lack of memory: {on_the_command_line}."
    what = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"The analysis of {name} ended early ({what}; TensorBoard's log may say why): {on_the_command_line}."
