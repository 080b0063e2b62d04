"""Analyses the windows of a running script while it trains, one after the other.

In: `LiveWindow`s.  Out: their `WindowFinding`s. The folder of a window is removed once it has been analysed.

Each analysis has a process of its own, with a low priority and limits of time and memory, so that the training goes first and
the memory is free afterwards.
"""

from __future__ import annotations

import contextlib
import queue
import shutil
import signal
import threading
from pathlib import Path

from advisor.host.worker_process import WorkerEnded, WorkerProcess
from advisor.model.live import LiveWindow, WindowFinding
from advisor.model.text import message_of
from advisor.workflows.window_worker import Job, work

MAX_WAITING = 4
"""Windows that wait for their analysis; further ones are removed without one."""


class WindowAnalysis:
    """The analyses of one run. Leaving the context ends them."""

    def __init__(self, source: Path | None = None) -> None:
        """Create the analyses; no process is started yet.

        Args:
            source: Script whose calls are matched to profiles without a recording.
        """
        self._source = source
        self._waiting: queue.Queue[LiveWindow | None] = queue.Queue(MAX_WAITING)
        self._done: queue.SimpleQueue[tuple[LiveWindow, WindowFinding]] = queue.SimpleQueue()
        self._worker = WorkerProcess(signal.SIG_IGN)  # on Ctrl-C, leaving the context ends it
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="advisor-windows", daemon=True)
        self._thread.start()

    def __enter__(self) -> WindowAnalysis:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, window: LiveWindow) -> None:
        """Analyse a window as soon as the earlier ones are done. One without a profile is only removed."""
        if window.problem:
            _remove(window)
            return
        try:
            self._waiting.put_nowait(window)
        except queue.Full:
            _remove(window)
            self._done.put((window, WindowFinding(problem="Windows came faster than they could be analysed.")))

    def finished(self) -> list[tuple[LiveWindow, WindowFinding]]:
        """Return the windows that have been analysed since the last call, oldest first."""
        windows = []
        with contextlib.suppress(queue.Empty):
            while True:
                windows.append(self._done.get_nowait())
        return windows

    def wait(self, seconds: float) -> None:
        """Wait until all windows have been analysed. None may be added afterwards.

        Args:
            seconds: Longest time.
        """
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
            self._thread.join(seconds)

    def close(self) -> None:
        """End the present analysis, if there is one, and leave out the others."""
        self._is_closed = True
        self._worker.close()
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)

    def _run(self) -> None:
        while (window := self._waiting.get()) is not None:
            finding = WindowFinding(problem="The window was left out.") if self._is_closed else self._analysed(window)
            _remove(window)
            self._done.put((window, finding))

    def _analysed(self, window: LiveWindow) -> WindowFinding:
        try:
            return self._worker.ask(work, Job(Path(window.folder), self._source))
        except WorkerEnded as ended:
            how = f"signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
            return WindowFinding(problem=f"The analysis of a window took too long or too much memory ({how}).")
        except Exception as error:  # no process can be started, or it has just been closed
            return WindowFinding(
                problem=f"A window could not be analysed ({type(error).__name__}: {message_of(error)})."
            )
        finally:
            self._worker.close()  # the next window has a fresh process, and the memory of this one is free


def _remove(window: LiveWindow) -> None:
    if not window.is_first:
        shutil.rmtree(window.folder, ignore_errors=True)
