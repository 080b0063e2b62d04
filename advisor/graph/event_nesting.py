"""Nests the events of each thread and assigns every event to a node.

In: a `HostTrace` and its `Forest`.  Out: `NestedThread`s: for each event its enclosing event and its node.

Events of different threads are joined as follows:
* `*Produce` on a worker belongs to the asynchronous iterator whose input's GetNext runs inside it (its `parent_id`). Without
  such a child it is joined by element id to the `*Consume` inside the consumer's GetNext.
* An executor on a pool thread belongs to the node whose GetNext or Produce contains the function run with the same step id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.nodes import Forest
from advisor.model.trace import EventKind, HostTrace, Thread
from advisor.profile.nesting import nest

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

MAX_NESTING = 500
"""Maximum nesting depth. A damaged file can nest every event, and the cost of lookups grows with the depth."""
NO_OWNER = -1
"""Owner of events that belong to no node."""


@dataclass(eq=False)
class NestedThread:
    """One thread's events with their nesting and owners."""

    thread: Thread
    parent: Rows
    owner: Rows

    def inherit(self, rows: Rows) -> None:
        """Assign to rows without an owner the owner of the nearest enclosing row that has one."""
        pending = rows[self.owner[rows] == NO_OWNER]
        above = self.parent[pending]
        while len(pending):
            has_parent = above >= 0
            pending, above = pending[has_parent], above[has_parent]
            owners = self.owner[above]
            known = owners != NO_OWNER
            self.owner[pending[known]] = owners[known]
            pending, above = pending[~known], self.parent[above[~known]]


def rows_of(thread: Thread, *kinds: EventKind) -> Rows:
    """Return the rows of a thread's events of these kinds, in order."""
    return np.flatnonzero(np.isin(thread.kind, np.array(kinds, np.uint8))).astype(np.int32)


def _own_iterators(host: HostTrace, forest: Forest) -> list[NestedThread]:
    """Nest every thread, and assign iterators and the Produce events around their inputs to nodes."""
    ids = np.array(sorted(forest.node_of_iterator), np.uint64)
    node_of = np.array([forest.node_of_iterator[int(i)] for i in ids], np.int32)
    parent_node = np.full(len(forest.nodes), NO_OWNER, np.int32)
    for index, consumer in forest.graph.edges:
        parent_node[index] = consumer
    nested = []
    for thread in host.threads:
        part = NestedThread(
            thread, nest(thread.start_ns, thread.end_ns, MAX_NESTING), np.full(len(thread), NO_OWNER, np.int32)
        )
        rows = rows_of(thread, EventKind.ITERATOR)
        if len(rows) and len(ids):
            where = np.minimum(np.searchsorted(ids, thread.key[rows]), len(ids) - 1)
            known = ids[where] == thread.key[rows]
            part.owner[rows[known]] = node_of[where[known]]
            above = part.parent[rows]
            inside_produce = known & (above >= 0) & (thread.kind[above] == EventKind.PRODUCE)
            part.owner[above[inside_produce]] = parent_node[node_of[where[inside_produce]]]
            # a root's id may be reused; its input tells which root it is
            inside_root = known & (above >= 0) & (thread.kind[above] == EventKind.ITERATOR) & (thread.link[above] == 0)
            caller = parent_node[node_of[where[inside_root]]]
            part.owner[above[inside_root]] = np.where(caller != NO_OWNER, caller, part.owner[above[inside_root]])
        nested.append(part)
    return nested


def _join_elements(nested: Sequence[NestedThread]) -> None:
    """Assign remaining Produce events to the node of the Consume event with the same type and element id."""
    owners: dict[tuple[int, int], int] = {}
    for part in nested:
        rows = rows_of(part.thread, EventKind.CONSUME)
        part.inherit(rows)
        labels, keys = part.thread.label[rows].tolist(), part.thread.key[rows].tolist()
        owners.update(zip(zip(labels, keys, strict=True), part.owner[rows].tolist(), strict=True))
    for part in nested:
        rows = rows_of(part.thread, EventKind.PRODUCE)
        rows = rows[part.owner[rows] == NO_OWNER]
        labels, keys = part.thread.label[rows].tolist(), part.thread.key[rows].tolist()
        part.owner[rows] = [owners.get(pair, NO_OWNER) for pair in zip(labels, keys, strict=True)]


def _join_functions(nested: Sequence[NestedThread]) -> None:
    """Assign executors to the node that started the function run with the same step id (column `link`)."""
    steps: list[npt.NDArray[np.uint64]] = []
    owners: list[Rows] = []
    for part in nested:
        rows = rows_of(part.thread, EventKind.FUNCTION)
        part.inherit(rows)
        rows = rows[(part.owner[rows] != NO_OWNER) & (part.thread.link[rows] != 0)]
        steps.append(part.thread.link[rows])
        owners.append(part.owner[rows])
    if not steps:
        return
    step, first = np.unique(np.concatenate(steps), return_index=True)
    owner = np.concatenate(owners)[first]
    for part in nested:
        rows = rows_of(part.thread, EventKind.EXECUTOR)
        if len(rows) and len(step):
            where = np.minimum(np.searchsorted(step, part.thread.link[rows]), len(step) - 1)
            known = step[where] == part.thread.link[rows]
            part.owner[rows[known]] = owner[where[known]]
        part.inherit(rows_of(part.thread, EventKind.OP))


def join(host: HostTrace, forest: Forest) -> list[NestedThread]:
    """Nest the events of every thread and assign each event to its node."""
    nested = _own_iterators(host, forest)
    _join_elements(nested)
    _join_functions(nested)
    return nested


def nearest(part: NestedThread, kinds: tuple[EventKind, ...]) -> Rows:
    """Return for each row the nearest enclosing row of one of `kinds`, or -1."""
    wanted = np.isin(part.thread.kind, np.array(kinds, np.uint8))
    enclosing = part.parent.copy()
    unsettled = np.flatnonzero((enclosing >= 0) & ~wanted[enclosing])
    while len(unsettled):
        enclosing[unsettled] = part.parent[enclosing[unsettled]]
        above = enclosing[unsettled]
        unsettled = unsettled[(above >= 0) & ~wanted[above]]
    return enclosing
