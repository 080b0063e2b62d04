"""What every host thread was doing for which node, at every moment of the window.

In: a `HostTrace` and its `Forest`.  Out: `Timeline`: per thread a piecewise constant activity, and sums per node (latency,
self time, own work, function time, Python time, op costs).

How events of different threads are joined:
* `*Produce` on a worker belongs to the asynchronous iterator whose input's GetNext runs inside it (its `parent_id`); one without
  such a child is joined through its element id to the `*Consume` inside the consumer's GetNext.
* an executor on a pool thread belongs to the node whose GetNext or Produce holds the function run with the same step
id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from advisor.graph.nodes import Forest
from advisor.model.catalog import PYTHON_OPS
from advisor.model.trace import EventKind, HostTrace, Thread

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

NOBODY = -1
"""Owner of what belongs to no node."""

MULTI_DEVICE_THREAD = "tf_data_multi_device_iterator"
"""Threads that fill the devices' buffers of a distributed dataset: nobody waits for them directly. Source: the thread
names in
`tensorflow/core/kernels/data/multi_device_iterator_ops.cc`."""


DONE_CALLBACK = "ExecutorDoneCallback"
"""Hands a function's results on: real work for MapAndBatch (it copies them into the batch), but after Python ops mostly a
wait for the lock that releasing NumPy buffers needs [measured: as long as the next call of the Python function]."""


@dataclass(frozen=True, slots=True)
class Activity:
    """What a thread does, as far as attribution cares: on whose behalf, and where it is."""

    top_kind: EventKind
    """ITERATOR: a consumer called a root; PRODUCE: worker of an asynchronous node; EXECUTOR: runs a node's function."""
    top_owner: int
    leaf_owner: int
    """The innermost node it is in."""
    is_in_function: bool = False
    """It waits for a function of that node, which runs on pool threads."""
    is_multi_device: bool = False
    """A root call made by the thread that feeds several devices, not by the training step."""


@dataclass(frozen=True, eq=False)
class RootCalls:
    """Calls of a pipeline's root by its consumer, in order of time. All columns have the same length."""

    start_ns: Ints
    end_ns: Ints
    iterator_id: npt.NDArray[np.uint64]
    thread: Rows


@dataclass(eq=False)
class NodeSums:
    """Sums of one node over the window (nanoseconds)."""

    latency_ns: int = 0
    self_ns: int = 0
    waiting_ns: int = 0
    """The part of self time spent inside synchronous function runs, whose work is in `function_ns`."""
    produce_ns: int = 0
    """Own time inside Produce events: worker time that is not the input's."""
    function_ns: int = 0
    done_ns: int = 0
    """The part of function time that is in done callbacks."""
    python_ns: int = 0
    num_calls: int = 0
    produced: int = 0
    ops: dict[str, list[int]] = field(default_factory=dict)
    """Op type -> [count, total_ns]."""


@dataclass(eq=False)
class Timeline:
    """See the module's docstring. `times[t]`/`codes[t]` are thread t's boundaries and the activity from each on (-1:
    none).
    """

    activities: list[Activity]
    times: list[Ints]
    codes: list[Rows]
    sums: list[NodeSums]
    root_calls: dict[int, RootCalls]
    """Root node index -> the calls of it by a consumer or by the feeding thread."""
    fed_roots: frozenset[int]
    """Roots that are called by a multi-device thread only."""
    slowest_call: dict[int, dict[int, int]]
    """Root node index -> self time per node inside its slowest call, on the caller's thread alone (the classic
    view).
    """


def nest(start: Ints, end: Ints) -> Rows:
    """Row of the event that directly encloses each event of a thread (sorted by start, longer first); -1 at the top.

    An event that sticks out of another one (clock rounding) counts as inside it.
    """
    parents = np.full(len(start), -1, np.int32)
    stack: list[tuple[int, int]] = []
    for row, (begin, finish) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while stack and stack[-1][0] <= begin:
            stack.pop()
        if stack:
            parents[row] = stack[-1][1]
        stack.append((finish, row))
    return parents


@dataclass(eq=False)
class _Nested:
    """One thread's events with their nesting and owners."""

    thread: Thread
    parent: Rows
    owner: Rows

    def inherit(self, rows: Rows) -> None:
        """Give rows without an owner that of the nearest enclosing row that has one."""
        pending = rows[self.owner[rows] == NOBODY]
        above = self.parent[pending]
        while len(pending):
            has_parent = above >= 0
            pending, above = pending[has_parent], above[has_parent]
            found = self.owner[above]
            known = found != NOBODY
            self.owner[pending[known]] = found[known]
            pending, above = pending[~known], self.parent[above[~known]]


def _rows(thread: Thread, *kinds: EventKind) -> Rows:
    return np.flatnonzero(np.isin(thread.kind, np.array(kinds, np.uint8))).astype(np.int32)


def _own_iterators(host: HostTrace, forest: Forest) -> list[_Nested]:
    """Nest every thread and give iterators, and the Produce events around their inputs, their nodes."""
    ids = np.array(sorted(forest.node_of_iterator), np.uint64)
    node_of = np.array([forest.node_of_iterator[int(i)] for i in ids], np.int32)
    parent_node = np.array([NOBODY if n.parent is None else n.parent.index for n in forest.nodes], np.int32)
    nested = []
    for thread in host.threads:
        part = _Nested(thread, nest(thread.start_ns, thread.end_ns), np.full(len(thread), NOBODY, np.int32))
        rows = _rows(thread, EventKind.ITERATOR)
        if len(rows) and len(ids):
            where = np.minimum(np.searchsorted(ids, thread.key[rows]), len(ids) - 1)
            known = ids[where] == thread.key[rows]
            part.owner[rows[known]] = node_of[where[known]]
            above = part.parent[rows]
            inside_produce = known & (above >= 0) & (thread.kind[above] == EventKind.PRODUCE)
            part.owner[above[inside_produce]] = parent_node[node_of[where[inside_produce]]]
        nested.append(part)
    return nested


def _join_elements(host: HostTrace, nested: Sequence[_Nested]) -> None:
    """Produce events still without a node get it through (type, element id) from the Consume events."""
    owners: dict[tuple[int, int], int] = {}
    for part in nested:
        rows = _rows(part.thread, EventKind.CONSUME)
        part.inherit(rows)
        labels, keys = part.thread.label[rows].tolist(), part.thread.key[rows].tolist()
        owners.update(zip(zip(labels, keys, strict=True), part.owner[rows].tolist(), strict=True))
    for part in nested:
        rows = _rows(part.thread, EventKind.PRODUCE)
        rows = rows[part.owner[rows] == NOBODY]
        labels, keys = part.thread.label[rows].tolist(), part.thread.key[rows].tolist()
        part.owner[rows] = [owners.get(pair, NOBODY) for pair in zip(labels, keys, strict=True)]


def _join_functions(nested: Sequence[_Nested]) -> None:
    """Executors get the node that started the function run with their step id (column `link`)."""
    steps: list[npt.NDArray[np.uint64]] = []
    owners: list[Rows] = []
    for part in nested:
        rows = _rows(part.thread, EventKind.FUNCTION)
        part.inherit(rows)
        rows = rows[(part.owner[rows] != NOBODY) & (part.thread.link[rows] != 0)]
        steps.append(part.thread.link[rows])
        owners.append(part.owner[rows])
    if not steps:
        return
    step, first = np.unique(np.concatenate(steps), return_index=True)
    owner = np.concatenate(owners)[first]
    for part in nested:
        rows = _rows(part.thread, EventKind.EXECUTOR)
        if len(rows) and len(step):
            where = np.minimum(np.searchsorted(step, part.thread.link[rows]), len(step) - 1)
            known = step[where] == part.thread.link[rows]
            part.owner[rows[known]] = owner[where[known]]
        part.inherit(_rows(part.thread, EventKind.OP))


def build_timeline(host: HostTrace, forest: Forest) -> Timeline:
    """Join the events of all threads. Cost grows linearly with the number of events (times log for sorting)."""
    nested = _own_iterators(host, forest)
    _join_elements(host, nested)
    _join_functions(nested)
    timeline = Timeline([], [], [], [NodeSums() for _ in forest.nodes], {}, frozenset(), {})
    for part in nested:
        _add_sums(part, timeline.sums, host.labels)
    for sums in timeline.sums:
        if sums.python_ns:
            sums.function_ns -= sums.done_ns
    _collect_root_calls(forest, nested, timeline)
    known: dict[Activity, int] = {}
    for part in nested:
        times, codes = _activities(part, known)
        timeline.times.append(times)
        timeline.codes.append(codes)
    timeline.activities = list(known)
    return timeline


def _sum_by(owner: Rows, values: Ints, count: int) -> Ints:
    return np.bincount(owner, weights=values, minlength=count).astype(np.int64)


def _add_sums(part: _Nested, sums: list[NodeSums], labels: Sequence[str]) -> None:
    """Add one thread's durations to the sums of its nodes."""
    thread, owner = part.thread, part.owner
    duration = thread.end_ns - thread.start_ns
    count = len(sums)
    iterators = _rows(thread, EventKind.ITERATOR)
    iterators = iterators[owner[iterators] != NOBODY]
    if len(iterators):
        # the nearest enclosing iterator or produce event of each iterator call loses the call's time from its own
        scope = _nearest(part, (EventKind.ITERATOR, EventKind.PRODUCE))
        own = duration.copy()
        inside = iterators[scope[iterators] >= 0]
        np.subtract.at(own, scope[inside], duration[inside])
        calls = np.bincount(owner[iterators], minlength=count)
        latency = _sum_by(owner[iterators], duration[iterators], count)
        self_time = _sum_by(owner[iterators], np.maximum(own[iterators], 0), count)
        for index in np.flatnonzero(calls).tolist():
            sums[index].num_calls += int(calls[index])
            sums[index].latency_ns += int(latency[index])
            sums[index].self_ns += int(self_time[index])
        _add_function_waits(part, scope, duration, sums)
    else:
        own = duration
    produces = _rows(thread, EventKind.PRODUCE)
    produces = produces[owner[produces] != NOBODY]
    for index, value, number in zip(*_grouped(owner[produces], np.maximum(own[produces], 0)), strict=True):
        sums[index].produce_ns += value
        sums[index].produced += number
    executors = _rows(thread, EventKind.EXECUTOR)
    # executors nest: a function that calls another, and a done callback that starts the next run on its own thread
    own_run = duration.copy()
    above = _nearest(part, (EventKind.EXECUTOR,))[executors]
    np.subtract.at(own_run, above[above >= 0], duration[executors[above >= 0]])
    executors = executors[owner[executors] != NOBODY]
    is_done = np.array([name == DONE_CALLBACK for name in labels] or [False])[thread.label[executors]]
    for index, value, _ in zip(*_grouped(owner[executors], np.maximum(own_run[executors], 0)), strict=True):
        sums[index].function_ns += value
    done = executors[is_done]
    for index, value, _ in zip(*_grouped(owner[done], np.maximum(own_run[done], 0)), strict=True):
        sums[index].done_ns += value
    _add_ops(part, duration, sums, labels)


def _grouped(owner: Rows, values: Ints) -> tuple[list[int], list[int], list[int]]:
    """Distinct owners, the sum of values of each, and how many there are of each."""
    distinct, inverse, number = np.unique(owner, return_inverse=True, return_counts=True)
    total = np.bincount(inverse, weights=values, minlength=len(distinct)).astype(np.int64)
    return distinct.tolist(), total.tolist(), number.tolist()


def _nearest(part: _Nested, kinds: tuple[EventKind, ...]) -> Rows:
    """For each row the nearest enclosing row of one of `kinds`; -1: none."""
    wanted = np.isin(part.thread.kind, np.array(kinds, np.uint8))
    nearest = part.parent.copy()
    unsettled = np.flatnonzero((nearest >= 0) & ~wanted[nearest])
    while len(unsettled):
        nearest[unsettled] = part.parent[nearest[unsettled]]
        above = nearest[unsettled]
        unsettled = unsettled[(above >= 0) & ~wanted[above]]
    return nearest


def _add_function_waits(part: _Nested, scope: Rows, duration: Ints, sums: list[NodeSums]) -> None:
    """Time inside synchronous function runs, less the iterators called in it (an interleave's function makes none)."""
    thread = part.thread
    rows = _rows(thread, EventKind.FUNCTION)
    above = scope[rows]
    direct = (above >= 0) & (thread.kind[above] == EventKind.ITERATOR)
    rows = rows[direct]
    outermost = rows[thread.kind[part.parent[rows]] != EventKind.FUNCTION]
    outermost = outermost[part.owner[outermost] != NOBODY]
    remaining = duration.copy()
    function_scope = _nearest(part, (EventKind.FUNCTION, EventKind.ITERATOR, EventKind.PRODUCE))
    inner = _rows(thread, EventKind.ITERATOR)
    inner = inner[function_scope[inner] >= 0]
    np.subtract.at(remaining, function_scope[inner], duration[inner])
    for index, value, _ in zip(*_grouped(part.owner[outermost], np.maximum(remaining[outermost], 0)), strict=True):
        sums[index].waiting_ns += value


def _add_ops(part: _Nested, duration: Ints, sums: list[NodeSums], labels: Sequence[str]) -> None:
    rows = _rows(part.thread, EventKind.OP)
    rows = rows[part.owner[rows] != NOBODY]
    if not len(rows):
        return
    pair = part.owner[rows].astype(np.int64) * (len(labels) + 1) + part.thread.label[rows]
    for key, value, number in zip(*_grouped(pair, duration[rows]), strict=True):
        index, label = divmod(key, len(labels) + 1)
        entry = sums[index].ops.setdefault(labels[label], [0, 0])
        entry[0] += number
        entry[1] += value
        if labels[label] in PYTHON_OPS:
            sums[index].python_ns += value


def _collect_root_calls(forest: Forest, nested: Sequence[_Nested], timeline: Timeline) -> None:
    """Find the calls of each root, its slowest call's self times, and which roots only feed devices."""
    columns: dict[int, list[tuple[int, int, int, int]]] = {}
    fed: dict[int, bool] = {}
    slowest: dict[int, tuple[int, _Nested, int]] = {}
    is_root = np.array([node.parent is None for node in forest.nodes] + [False])
    for number, part in enumerate(nested):
        thread = part.thread
        rows = _rows(thread, EventKind.ITERATOR)
        rows = rows[is_root[part.owner[rows]]]
        feeds = thread.name.startswith(MULTI_DEVICE_THREAD)
        starts, ends, keys = thread.start_ns[rows].tolist(), thread.end_ns[rows].tolist(), thread.key[rows].tolist()
        for row, owner, start, end, key in zip(
            rows.tolist(), part.owner[rows].tolist(), starts, ends, keys, strict=True
        ):
            columns.setdefault(owner, []).append((start, end, key, number))
            fed[owner] = fed.get(owner, True) and feeds
            if end - start > slowest.get(owner, (-1, part, -1))[0]:
                slowest[owner] = (end - start, part, row)
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
    timeline.slowest_call = {owner: _self_times_in(part, row) for owner, (_, part, row) in slowest.items()}


def _self_times_in(part: _Nested, row: int) -> dict[int, int]:
    """Self time per node inside one call, on its own thread."""
    thread = part.thread
    last = int(np.searchsorted(thread.start_ns, thread.end_ns[row], side="left"))
    rows = np.arange(row, last, dtype=np.int32)
    rows = rows[(thread.kind[rows] == EventKind.ITERATOR) & (part.owner[rows] != NOBODY)]
    duration = thread.end_ns - thread.start_ns
    scope = _nearest(part, (EventKind.ITERATOR,))
    times: dict[int, int] = {}
    for inner in rows.tolist():
        times[int(part.owner[inner])] = times.get(int(part.owner[inner]), 0) + int(duration[inner])
        if inner != row and scope[inner] >= row:
            above = int(part.owner[scope[inner]])
            times[above] = times.get(above, 0) - int(duration[inner])
    return times


def _activities(part: _Nested, known: dict[Activity, int]) -> tuple[Ints, Rows]:
    """The thread's boundaries in time and its activity from each on; new activities are added to `known`."""
    thread, owner = part.thread, part.owner
    rows = _rows(thread, EventKind.ITERATOR, EventKind.PRODUCE, EventKind.EXECUTOR, EventKind.FUNCTION)
    rows = rows[(owner[rows] != NOBODY) & (thread.end_ns[rows] > thread.start_ns[rows])]
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int32)
    start, end = thread.start_ns[rows], thread.end_ns[rows]
    parent = nest(start, end)
    top = parent.copy()
    while True:
        above = np.where(top >= 0, parent[top], -1)
        if not (above >= 0).any():
            break
        top = np.where(above >= 0, above, top)
    top = np.where(top >= 0, top, np.arange(len(rows)))
    feeds = thread.name.startswith(MULTI_DEVICE_THREAD)
    kind = thread.kind[rows]
    columns = (kind[top], owner[rows][top], owner[rows], kind == EventKind.FUNCTION)
    distinct, inverse = np.unique(np.stack([c.astype(np.int64) for c in columns]), axis=1, return_inverse=True)
    numbers = [
        known.setdefault(Activity(EventKind(k), t, leaf, bool(f), feeds and k == EventKind.ITERATOR), len(known))
        for k, t, leaf, f in distinct.T.tolist()
    ]
    code = np.array(numbers, np.int32)[inverse.reshape(-1)]
    depths, ends = [0] * len(rows), end.tolist()
    for row, above_row in enumerate(parent.tolist()):
        if above_row >= 0:
            depths[row] = depths[above_row] + 1
            ends[row] = min(ends[row], ends[above_row])  # an inner event never outlives the outer one
    depth, end = np.array(depths, np.int32), np.array(ends, np.int64)
    # at one instant: ends first (inner before outer), then starts (outer before inner)
    times = np.concatenate([end, start])
    phase = np.concatenate([np.zeros(len(rows), np.int8), np.ones(len(rows), np.int8)])
    rank = np.concatenate([-depth, depth])
    codes = np.concatenate([np.where(parent >= 0, code[parent], -1), code]).astype(np.int32)
    order = np.lexsort((rank, phase, times))
    return times[order], codes[order]
