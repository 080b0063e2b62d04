"""Runs and profiles a script for its analysis, and keeps its process: trials are then made in it.

In: a `CaptureRequest`.  Out: the run folder; a `HeldProcess`, if the script is held after its window.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from advisor.capture.launch import finished_run, prepare_folder
from advisor.capture.request import CANNOT_WRITE, CaptureRequest, Progress
from advisor.prove.session.held_process import HeldProcess, Hold

_ANYWHERE = Hold(consumer_call=None, calls=(), hold_at=None, lost=())


class HeldAnalysis:
    """Context manager: leaving it ends the process, unless it was taken."""

    def __init__(self, deadline: float = math.inf) -> None:
        """Create it; nothing is run yet.

        Args:
            deadline: When everything must have ended, on the monotonic clock.
        """
        self._process: HeldProcess | None = None
        self._deadline = deadline

    def __enter__(self) -> HeldAnalysis:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    def capture(self, request: CaptureRequest, on_progress: Callable[[Progress], None]) -> Path:
        """Do what `advisor.capture.launch.capture` does, and hold the script after its window where that is possible."""
        is_new = prepare_folder(request)
        write_errors: list[str] = []

        def handle(progress: Progress) -> None:
            if progress.phase == CANNOT_WRITE:
                write_errors.append(progress.text)
            else:
                on_progress(progress)

        deadline = math.inf if request.deadline is None else request.deadline
        self._process = HeldProcess(request, _ANYWHERE, deadline, handle)
        try:
            exit_code = self._process.measure(then=self._deadline)
            notes = self._process.notes
        except BaseException as error:
            self.end(error)
            if is_new and isinstance(error, KeyboardInterrupt):
                shutil.rmtree(request.out, ignore_errors=True)
            raise
        if exit_code is not None:
            self.end()
        return finished_run(request, exit_code or 0, notes, write_errors)

    def take(self) -> HeldProcess | None:
        """Return the process, which the caller must end; None if there is none."""
        process, self._process = self._process, None
        return process

    def end(self, error: BaseException | None = None) -> None:
        """End the process, see `HeldProcess.end`."""
        process = self.take()
        if process is not None:
            process.end(error)
