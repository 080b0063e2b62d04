"""Determines which node every host thread was working for at every moment of the window.

In: a `HostTrace` and its `Forest`.  Out: `Timeline`: a piecewise constant activity per thread, the calls of each root, and the
sums per node.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.event_nesting import MAX_NESTING, NO_OWNER, Ints, NestedThread, Rows, join, nearest, rows_of
from advisor.graph.nodes import Forest
from advisor.graph.sums import NodeSums, sum_up
from advisor.model.trace import EventKind, HostTrace
from advisor.profile.nesting import nest

MULTI_DEVICE_THREAD = "tf_data_multi_device_iterator"
"""Name prefix of threads that fill the device buffers of a distributed dataset; no consumer waits for them directly.
Source: `tensorflow/core/kernels/data/multi_device_iterator_ops.cc`."""
SLOW_CALLS_KEPT = 10
"""Number of slowest calls of each root that are described individually."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a thread is doing, as far as attribution is concerned: for which node, and inside which node."""

    top_kind: EventKind
    """ITERATOR: a consumer's call of a root; PRODUCE: a worker of an asynchronous node; EXECUTOR: runs a node's function."""
    top_owner: int
    leaf_owner: int
    """The innermost node."""
    is_in_function: bool = False
    """Whether the thread waits for a function of that node, which runs on pool threads."""
    is_multi_device: bool = False
    """Whether the root was called by a thread that feeds several devices instead of by the training step."""


@dataclass(frozen=True, eq=False)
class RootCalls:
    """Calls of a pipeline's root by its consumer, in chronological order. All columns have the same length."""

    start_ns: Ints
    end_ns: Ints
    iterator_id: npt.NDArray[np.uint64]
    thread: Rows


@dataclass(frozen=True, slots=True)
class SlowCall:
    """One call of a root and its nested calls on the caller's thread."""

    start_ns: int
    end_ns: int
    inside: dict[int, tuple[int, int, int]]
    """Node index -> (calls, sum of their durations, self time) inside this call, in nanoseconds."""


@dataclass(eq=False)
class Timeline:
    """The activities of all threads of one host, the calls of its roots, and the sums per node."""

    activities: list[Activity]
    times: list[Ints]
    """For each thread the instants at which its activity changes, in nanoseconds, sorted."""
    codes: list[Rows]
    """For each thread the activity from each of these instants on: index into `activities`, -1 for none."""
    sums: list[NodeSums]
    root_calls: dict[int, RootCalls]
    """Root node index -> its calls by a consumer or by a multi-device thread."""
    fed_roots: frozenset[int]
    """Roots that are called only by multi-device threads."""
    slow_calls: dict[int, list[SlowCall]]
    """Root node index -> its slowest calls, slowest first."""

    def slowest_call(self, root: int) -> dict[int, int]:
        """Return the self time per node inside the root's slowest call, on the caller's thread only (the classic view)."""
        return {node: own for call in self.slow_calls.get(root, ())[:1] for node, (_, _, own) in call.inside.items()}


def build_timeline(host: HostTrace, forest: Forest) -> Timeline:
    """Join the events of all threads, in O(n log n) of the number of events."""
    nested = join(host, forest)
    timeline = Timeline([], [], [], sum_up(nested, len(forest.nodes), host.labels), {}, frozenset(), {})
    _collect_root_calls(forest, nested, timeline)
    known: dict[Activity, int] = {}
    for part in nested:
        times, codes = _activities(part, known)
        timeline.times.append(times)
        timeline.codes.append(codes)
    timeline.activities = list(known)
    return timeline


def _collect_root_calls(forest: Forest, nested: Sequence[NestedThread], timeline: Timeline) -> None:
    """Find the calls of each root, what its slowest calls did, and which roots only feed devices."""
    columns: dict[int, list[tuple[int, int, int, int]]] = {}
    fed: dict[int, bool] = {}
    slowest: dict[int, list[tuple[int, int, int]]] = {}
    is_root = np.array([not forest.graph.out_degree(node.index) for node in forest.nodes] + [False])
    for number, part in enumerate(nested):
        thread = part.thread
        rows = rows_of(thread, EventKind.ITERATOR)
        rows = rows[is_root[part.owner[rows]]]
        # a root inside another node's call or worker is a fragment with an unrecorded parent; no consumer waits for it directly
        rows = rows[_enclosing_owner(part, rows) == NO_OWNER]
        feeds = thread.name.startswith(MULTI_DEVICE_THREAD)
        starts, ends, keys = thread.start_ns[rows].tolist(), thread.end_ns[rows].tolist(), thread.key[rows].tolist()
        for row, owner, start, end, key in zip(
            rows.tolist(), part.owner[rows].tolist(), starts, ends, keys, strict=True
        ):
            columns.setdefault(owner, []).append((start, end, key, number))
            fed[owner] = fed.get(owner, True) and feeds
            heap = slowest.setdefault(owner, [])
            entry = (end - start, -number, -row)  # the first of equally long calls
            if len(heap) < SLOW_CALLS_KEPT:
                heapq.heappush(heap, entry)
            elif entry > heap[0]:
                heapq.heapreplace(heap, entry)
    for owner, calls in columns.items():
        calls.sort()
        start, end, key, thread_number = zip(*calls, strict=True)
        timeline.root_calls[owner] = RootCalls(
            np.array(start, np.int64),
            np.array(end, np.int64),
            np.array(key, np.uint64),
            np.array(thread_number, np.int32),
        )
    timeline.fed_roots = frozenset(owner for owner, only_fed in fed.items() if only_fed)
    scopes: dict[int, Rows] = {}
    for owner, heap in slowest.items():
        timeline.slow_calls[owner] = []
        for _, number, row in sorted(heap, reverse=True):
            part = nested[-number]
            if number not in scopes:
                scopes[number] = nearest(part, (EventKind.ITERATOR,))
            timeline.slow_calls[owner].append(_look_inside(part, -row, scopes[number]))


def _enclosing_owner(part: NestedThread, rows: Rows) -> Rows:
    """The node of the nearest enclosing event that has one; NO_OWNER if none has."""
    owners = np.full(len(rows), NO_OWNER, np.int32)
    above = part.parent[rows]
    while (pending := (above >= 0) & (owners == NO_OWNER)).any():
        owners[pending] = part.owner[above[pending]]
        above = np.where(pending, part.parent[np.maximum(above, 0)], above)
    return owners


def _look_inside(part: NestedThread, row: int, scope: Rows) -> SlowCall:
    """Describe the nodes inside one call, on its thread. `scope` holds each row's nearest enclosing iterator."""
    thread = part.thread
    begin, finish = int(thread.start_ns[row]), int(thread.end_ns[row])
    last = int(np.searchsorted(thread.start_ns, finish, side="left"))
    rows = np.arange(row, max(last, row + 1), dtype=np.int32)
    rows = rows[(thread.kind[rows] == EventKind.ITERATOR) & (part.owner[rows] != NO_OWNER)]
    inside: dict[int, tuple[int, int, int]] = {}
    for inner in rows.tolist():
        node, time = int(part.owner[inner]), int(thread.end_ns[inner] - thread.start_ns[inner])
        calls, total, own = inside.get(node, (0, 0, 0))
        inside[node] = (calls + 1, total + time, own + time)
        if inner != row and scope[inner] >= row:
            above = int(part.owner[scope[inner]])
            calls, total, own = inside.get(above, (0, 0, 0))
            inside[above] = (calls, total, own - time)
    return SlowCall(begin, finish, inside)


def _activities(part: NestedThread, known: dict[Activity, int]) -> tuple[Ints, Rows]:
    """The instants at which the thread's activity changes, and the activity from then on; adds new activities to `known`."""
    thread, owner = part.thread, part.owner
    rows = rows_of(thread, EventKind.ITERATOR, EventKind.PRODUCE, EventKind.EXECUTOR, EventKind.FUNCTION)
    rows = rows[(owner[rows] != NO_OWNER) & (thread.end_ns[rows] > thread.start_ns[rows])]
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    start, end = thread.start_ns[rows], thread.end_ns[rows]
    parent = nest(start, end, MAX_NESTING)
    top, depth, end = _settle(parent, end)
    feeds = thread.name.startswith(MULTI_DEVICE_THREAD)
    kind = thread.kind[rows]
    leaf = owner[rows].astype(np.int64)
    num_owners = int(leaf.max()) + 1
    # encode each activity as one number: sorting numbers is several times faster than sorting the rows of a table
    distinct, inverse = np.unique(
        ((kind[top].astype(np.int64) * num_owners + leaf[top]) * num_owners + leaf) * 2 + (kind == EventKind.FUNCTION),
        return_inverse=True,
    )
    numbers = []
    for number in distinct.tolist():
        rest, is_in_function = divmod(number, 2)
        rest, leaf_owner = divmod(rest, num_owners)
        top_kind, top_owner = divmod(rest, num_owners)
        feeding = feeds and top_kind == EventKind.ITERATOR
        activity = Activity(EventKind(top_kind), top_owner, leaf_owner, bool(is_in_function), feeding)
        numbers.append(known.setdefault(activity, len(known)))
    code = np.array(numbers, np.int32)[inverse.reshape(-1)]
    # at one instant: ends first (inner before outer), then starts (outer before inner)
    times = np.concatenate([end, start])
    phase = np.concatenate([np.zeros(len(rows), np.int8), np.ones(len(rows), np.int8)])
    rank = np.concatenate([-depth, depth])
    codes = np.concatenate([np.where(parent >= 0, code[parent], -1), code]).astype(np.int32)
    order = np.lexsort((rank, phase, times))
    return times[order], codes[order]


def _settle(parent: Rows, end: Ints) -> tuple[Rows, Rows, Ints]:
    """Outermost enclosing row, nesting depth and end of each row; an inner event is cut off at the end of the outer one."""
    top = np.where(parent >= 0, parent, np.arange(len(parent), dtype=np.int32))
    depth = (parent >= 0).astype(np.int32)
    while True:  # every iteration doubles the number of levels looked up
        end = np.minimum(end, end[top])
        above = top[top]
        if (above == top).all():
            return top, depth, end
        depth, top = depth + depth[top], above
