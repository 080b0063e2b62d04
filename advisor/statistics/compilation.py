"""Counts tracing and compilation in the window; a steady state has neither.

In: the activity of each host.  Out: `CompileSums`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from advisor.model.activity import Flags, HostActivity, HostKind
from advisor.statistics.time_spans import Ints, outermost_rows, unite

GRAPH_BUILDING = "tf.function-graph_building"
_NO_PROGRAMS = (GRAPH_BUILDING, "Grappler", "MetaOptimizer")
"""Compilation that does not belong to an XLA program."""
_CALLS = (HostKind.FUNCTION_CALL, HostKind.TRACED_CALL, HostKind.MARKER)
MAX_NAMES = 10
"""Maximum number of programs named."""


@dataclass(slots=True)
class CompileSums:
    """Counts and time over all hosts."""

    num_tracings: int = 0
    num_compilations: int = 0
    compile_ns: int = 0
    """Time in ps; every moment of a host is counted once."""
    names: Counter[str] = field(default_factory=Counter)
    """Names of traced functions and compiled programs."""

    def add(self, activity: HostActivity) -> None:
        """Add one host."""
        traced = np.flatnonzero(activity.kind == HostKind.TRACED_CALL)
        rows = np.flatnonzero(activity.kind == HostKind.COMPILE)
        start = activity.start_ps[rows]
        self.compile_ns += unite(start, start + activity.duration_ps[rows]).length // 1000
        is_building = _are_named(activity, rows, (GRAPH_BUILDING,))
        programs = _programs(activity, rows[~_are_named(activity, rows, _NO_PROGRAMS)])
        self.num_tracings += len(traced) or len(outermost_rows(activity, rows[is_building]))
        self.num_compilations += len(programs)
        names = activity.name[np.concatenate([traced, np.setdiff1d(programs, traced)])].tolist()
        self.names.update(activity.names[name] for name in names)

    def merge(self, other: CompileSums) -> None:
        """Add the counts of another host."""
        self.num_tracings += other.num_tracings
        self.num_compilations += other.num_compilations
        self.compile_ns += other.compile_ns
        self.names.update(other.names)

    @property
    def most_common(self) -> tuple[str, ...]:
        """Return the names of traced or compiled functions, most frequent first."""
        return tuple(name for name, _ in self.names.most_common(MAX_NAMES))


def _are_named(activity: HostActivity, rows: Ints, starts: tuple[str, ...]) -> Flags:
    names = np.array([name.startswith(starts) for name in activity.names] or [False], np.bool_)
    return names[activity.name[rows]]


def _programs(activity: HostActivity, rows: Ints) -> Ints:
    """Return one row per compiled program: the function call that contains the compiler phases, or else the phase itself.

    Phases on pool threads belong to the program that another thread compiles at that time.
    """
    end = activity.start_ps + activity.duration_ps
    calls = outermost_rows(activity, np.flatnonzero(np.isin(activity.kind, np.array(_CALLS, np.uint8))))
    programs: dict[int, None] = {}
    phases = outermost_rows(activity, rows)
    for row in phases[np.argsort(-activity.duration_ps[phases], kind="stable")].tolist():
        # the last call that begins before the phase, on its thread
        before = int(np.searchsorted(calls, row)) - 1
        call = int(calls[before]) if before >= 0 else -1
        is_inside = call >= 0 and activity.thread[call] == activity.thread[row] and activity.start_ps[row] < end[call]
        program = call if is_inside else row
        if is_inside or not any(activity.start_ps[o] <= activity.start_ps[row] < end[o] for o in programs):
            programs[program] = None
    return np.array(sorted(programs), np.int64)
