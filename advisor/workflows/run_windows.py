"""The profiled windows of one watched run: asked for as planned, analysed, and put together.

In: the samples and windows of the run.  Out: requests for windows; the bottlenecks in `WatchedRun`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

from advisor.live.watched_run import Change, WatchedRun
from advisor.live.window_plan import WindowPlan
from advisor.model.live import BottleneckStretch, LiveSample, LiveWindow, SlowPeriod
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.window_analysis import WindowAnalysis

FINISH_S = 60.0
"""Longest wait for the analysis of the last window after the end of the run."""


class RunWindows:
    """The windows of one run."""

    def __init__(
        self, run: WatchedRun, plan: WindowPlan, folder: Path, analysis: WindowAnalysis, ask: Callable[[Path], None]
    ) -> None:
        """See `run_windows`."""
        self._run, self._plan, self._folder, self._analysis, self._ask = run, plan, folder, analysis, ask
        self._asked = 0

    def on_sample(self, sample: LiveSample, changes: list[SlowPeriod]) -> list[Change]:
        """Ask for a window if one is due.

        Args:
            sample: The latest sample.
            changes: The slow periods that begin or end with it.

        Returns:
            These slow periods, and the bottlenecks that have been found since the previous sample.
        """
        for change in changes:
            self._plan.note(change)
        if self._plan.is_due(sample.time_ns):
            self._asked += 1
            self._ask(self._folder / str(self._asked))
        return [*changes, *self._found()]

    def on_window(self, window: LiveWindow) -> None:
        """Count a window that has been written, and have it analysed."""
        self._plan.done(window)
        self._run.bottlenecks.count(window)
        self._analysis.add(window)

    def finish(self) -> list[BottleneckStretch]:
        """Wait for the last analysis after the end of the run; return the bottlenecks that are new with it."""
        self._analysis.wait(FINISH_S)
        return self._found()

    def _found(self) -> list[BottleneckStretch]:
        added = [self._run.bottlenecks.add(window, finding) for window, finding in self._analysis.finished()]
        return [stretch for stretch in added if stretch is not None]


@contextlib.contextmanager
def run_windows(run: WatchedRun, plan: WindowPlan, ask: Callable[[Path], None]) -> Iterator[RunWindows]:
    """Provide for the windows of a run. At the end of the block, their folders are removed and nothing is analysed any more.

    Args:
        run: Receives the bottlenecks.
        plan: When to ask for windows.
        ask: Asks the run for a window in a folder, which does not exist yet.
    """
    with temporary_folder("window") as folder, WindowAnalysis() as analysis:
        yield RunWindows(run, plan, folder, analysis, ask)
