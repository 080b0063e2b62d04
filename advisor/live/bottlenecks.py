"""The bottlenecks of a run over time, from its profiled windows.

In: windows with their findings, in order.  Out: stretches of windows with the same bottleneck, and what the windows cost.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.live import BottleneckStretch, LiveWindow, WindowFinding

MAX_STRETCHES = 100
"""Stretches that are kept; of more, the oldest are forgotten."""
MAX_PROBLEMS = 5
"""Different problems that are kept."""


class Bottlenecks:
    """What the windows of one run found. Memory is bounded: single windows are not kept."""

    def __init__(self) -> None:
        self.stretches: list[BottleneckStretch] = []
        """Oldest first."""
        self.windows = 0
        """Windows so far, with the run's own one."""
        self.inside_ns = 0
        """Time of the run inside windows: with the profiler, and while profiles were written."""
        self.writing_ns = 0
        """The part of it in which profiles were written."""
        self.analysis_cpu_ns = 0
        """CPU time of the analyses."""
        self.problems: list[str] = []
        """Why windows have no finding, one sentence each, without duplicates."""

    @property
    def current(self) -> BottleneckStretch | None:
        """The latest stretch; None before the first finding."""
        return self.stretches[-1] if self.stretches else None

    def of(self, consumer_id: str) -> BottleneckStretch | None:
        """Return the latest stretch of a consumer; None before the first finding."""
        return next((stretch for stretch in reversed(self.stretches) if stretch.consumer_id == consumer_id), None)

    def count(self, window: LiveWindow) -> None:
        """Count the cost of a window that has just been written."""
        self.windows += 1
        self.inside_ns += window.cost_ns
        self.writing_ns += window.written_ns - window.end_ns
        self._note(window.problem)

    def add(self, window: LiveWindow, finding: WindowFinding) -> BottleneckStretch | None:
        """Add what the analysis of a window found.

        Returns:
            The stretch that it begins; None if the bottleneck is the same as before, or unknown.
        """
        self.analysis_cpu_ns += finding.cpu_ns
        self._note(finding.problem)
        if finding.problem:
            return None
        latest = self.of(window.consumer_id)
        start = window.start_ns
        new = BottleneckStretch(window.consumer_id, window.first_step, window.last_step, start, start, 1, finding)
        if latest is not None and is_same(latest.finding, finding):
            place = self.stretches.index(latest)
            del self.stretches[place]
            self.stretches.append(
                replace(new, first_step=latest.first_step, began_ns=latest.began_ns, windows=latest.windows + 1)
            )
            return None
        self.stretches = [*self.stretches[1 - MAX_STRETCHES :], new]
        return new

    def _note(self, problem: str) -> None:
        if problem and problem not in self.problems and len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)


def is_same(first: WindowFinding, second: WindowFinding) -> bool:
    """Return whether two windows have the same bottleneck. Where steps hardly wait, it does not matter what they wait for."""
    if first.is_input_bound != second.is_input_bound:
        return False
    return not first.is_input_bound or first.bottleneck == second.bottleneck
