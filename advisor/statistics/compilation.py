"""Tracing and compilation in the window: in a steady state there is none.

In: the activity of one host after the other.  Out: `CompileSums`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from advisor.model.activity import HostActivity, HostKind
from advisor.statistics.intervals import Ints, unite

GRAPH_BUILDING = "tf.function-graph_building"
_REWRITERS = ("Grappler", "MetaOptimizer")
MAX_NAMES = 10


@dataclass(slots=True)
class CompileSums:
    """Counts and time over all hosts."""

    num_tracings: int = 0
    num_compilations: int = 0
    compile_ns: int = 0
    """Each moment of a host counted once."""
    names: Counter[str] = field(default_factory=Counter)
    """Functions that were traced and programs that were compiled."""

    def add(self, activity: HostActivity) -> None:
        """Add one host."""
        traced = np.flatnonzero(activity.kind == HostKind.TRACED_CALL)
        rows = np.flatnonzero(activity.kind == HostKind.COMPILE)
        outer = _outermost(activity, rows)
        is_building = np.array([activity.names[name] == GRAPH_BUILDING for name in activity.name[outer]], np.bool_)
        is_rewriting = np.array(
            [activity.names[name].startswith(_REWRITERS) for name in activity.name[outer]], np.bool_
        )
        compiled = outer[~is_building & ~is_rewriting]
        self.num_tracings += len(traced) or int(is_building.sum())
        self.num_compilations += len(compiled)
        start = activity.start_ps[rows]
        self.compile_ns += unite(start, start + activity.duration_ps[rows]).length // 1000
        self.names.update(activity.names[name] for name in activity.name[np.concatenate([traced, compiled])].tolist())

    @property
    def most_common(self) -> tuple[str, ...]:
        """What was traced or compiled, most often first."""
        return tuple(name for name, _ in self.names.most_common(MAX_NAMES))


def _outermost(activity: HostActivity, rows: Ints) -> Ints:
    """Rows that lie in no other one of the same thread (all sorted by thread and start)."""
    kept: list[int] = []
    for row in rows.tolist():
        last = kept[-1] if kept else -1
        if (
            last < 0
            or activity.thread[last] != activity.thread[row]
            or activity.start_ps[row] >= activity.start_ps[last] + activity.duration_ps[last]
        ):
            kept.append(row)
    return np.array(kept, np.int64)
