"""Sums the time of each node over the window: latency, self time, own work, function time, Python time, op costs.

In: joined threads.  Out: `NodeSums`, one per node. All times are in nanoseconds, summed over threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from advisor.graph.event_nesting import NO_OWNER, Ints, NestedThread, Rows, nearest, rows_of
from advisor.graph.short_ops import FunctionRuns
from advisor.host.calibration.analysis import LONGEST_UNPACKING_NS, OUTLIER_RATIO
from advisor.model.catalog import PYTHON_OPS
from advisor.model.trace import EventKind

DONE_CALLBACK = "ExecutorDoneCallback"
"""Passes on the results of a function. For MapAndBatch this is real work (it copies the results into the batch); after Python
ops it is mostly a wait for the GIL, which releasing NumPy buffers needs (measured: as long as the next Python call)."""


@dataclass(eq=False)
class NodeSums:
    """Sums of one node over the window (nanoseconds)."""

    latency_ns: int = 0
    self_ns: int = 0
    calls_ns: list[Ints] = field(default_factory=list)
    """Self time of each call."""
    waiting_ns: int = 0
    """The part of self time inside synchronous function runs, whose work is counted in `function_ns`."""
    produce_ns: int = 0
    """Self time inside Produce events: worker time without the input's."""
    function_ns: int = 0
    done_ns: int = 0
    """The part of function time in done callbacks."""
    runs: int = 0
    """Runs of its functions."""
    python_ns: int = 0
    num_calls: int = 0
    produced: int = 0
    produced_from_ns: int | None = None
    """Start of its first Produce event; None if there is none."""
    produced_to_ns: int = 0
    ops: dict[str, list[int]] = field(default_factory=dict)
    """Op type -> [count, total_ns]."""
    named_ops: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """(key of the op's name, op type) -> [count, time without ops inside it]."""

    def usual_self_ns(self) -> int:
        """Return the self time with every call capped at `OUTLIER_RATIO` times the median call."""
        if not self.calls_ns:
            return 0
        calls = np.concatenate(self.calls_ns)
        return int(np.minimum(calls, OUTLIER_RATIO.value * np.median(calls)).sum())

    def function_runs(self) -> FunctionRuns:
        """Return the runs of its functions, for the time of ops that were not recorded."""
        done_ns = 0 if self.python_ns else self.done_ns  # `sum_up` has subtracted it then
        return FunctionRuns(self.runs, max(0, self.function_ns - done_ns))

    def refill_ns(self) -> int:
        """Return the self time of the calls that fill a buffer and wait for it; see `LONGEST_UNPACKING_NS`."""
        if not self.calls_ns:
            return 0
        calls = np.concatenate(self.calls_ns)
        least = max(OUTLIER_RATIO.value * np.median(calls), LONGEST_UNPACKING_NS.value)
        return int(calls[calls > least].sum())


def sum_up(nested: Sequence[NestedThread], count: int, labels: Sequence[str]) -> list[NodeSums]:
    """Sum the events of all threads per node.

    Args:
        nested: The joined threads.
        count: The number of nodes.
        labels: The names that event labels refer to.
    """
    sums = [NodeSums() for _ in range(count)]
    for part in nested:
        _add_sums(part, sums, labels)
    for total in sums:
        if total.python_ns:
            total.function_ns -= total.done_ns
    return sums


def _sum_by(owner: Rows, values: Ints, count: int) -> Ints:
    return np.bincount(owner, weights=values, minlength=count).astype(np.int64)


def _add_sums(part: NestedThread, sums: list[NodeSums], labels: Sequence[str]) -> None:
    """Add one thread's durations to the sums of its nodes."""
    thread, owner = part.thread, part.owner
    duration = thread.end_ns - thread.start_ns
    count = len(sums)
    iterators = rows_of(thread, EventKind.ITERATOR)
    iterators = iterators[owner[iterators] != NO_OWNER]
    if len(iterators):
        # subtract the time of each iterator call from its nearest enclosing iterator or produce event
        scope = nearest(part, (EventKind.ITERATOR, EventKind.PRODUCE))
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
        for index, values in _split(owner[iterators], np.maximum(own[iterators], 0)):
            sums[index].calls_ns.append(values)
        _add_function_waits(part, scope, duration, sums)
    else:
        own = duration
    produces = rows_of(thread, EventKind.PRODUCE)
    produces = produces[owner[produces] != NO_OWNER]
    for index, value, _ in zip(*_grouped(owner[produces], np.maximum(own[produces], 0)), strict=True):
        sums[index].produce_ns += value
    for index in np.unique(owner[produces]).tolist():
        rows = produces[owner[produces] == index]
        begin, known = int(thread.start_ns[rows[0]]), sums[index].produced_from_ns
        sums[index].produced_from_ns = begin if known is None else min(begin, known)
        sums[index].produced_to_ns = max(sums[index].produced_to_ns, int(thread.end_ns[rows].max()))
    made = produces[thread.key[produces] != 0]  # opening an input produces no element and has no element id
    for index, _, number in zip(*_grouped(owner[made], duration[made]), strict=True):
        sums[index].produced += number
    functions = rows_of(thread, EventKind.FUNCTION)
    functions = functions[(part.parent[functions] < 0) | (thread.kind[part.parent[functions]] != EventKind.FUNCTION)]
    for index, _, number in zip(*_grouped(owner[functions], duration[functions]), strict=True):
        if index != NO_OWNER:
            sums[index].runs += number
    executors = rows_of(thread, EventKind.EXECUTOR)
    # executors nest: a function that calls another, and a done callback that starts the next run on its own thread
    own_run = duration.copy()
    above = nearest(part, (EventKind.EXECUTOR,))[executors]
    np.subtract.at(own_run, above[above >= 0], duration[executors[above >= 0]])
    executors = executors[owner[executors] != NO_OWNER]
    is_done = np.array([name == DONE_CALLBACK for name in labels] or [False])[thread.label[executors]]
    for index, value, _ in zip(*_grouped(owner[executors], np.maximum(own_run[executors], 0)), strict=True):
        sums[index].function_ns += value
    done = executors[is_done]
    for index, value, _ in zip(*_grouped(owner[done], np.maximum(own_run[done], 0)), strict=True):
        sums[index].done_ns += value
    _add_ops(part, duration, sums, labels)


def _split(owner: Rows, values: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield (owner, its values) for each distinct owner."""
    order = np.argsort(owner, kind="stable")
    distinct, first = np.unique(owner[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(values[order], first[1:]), strict=True)


def _grouped(owner: Rows, values: Ints) -> tuple[list[int], list[int], list[int]]:
    """Distinct owners, and the sum and number of the values of each."""
    distinct, inverse, number = np.unique(owner, return_inverse=True, return_counts=True)
    total = np.bincount(inverse, weights=values, minlength=len(distinct)).astype(np.int64)
    return distinct.tolist(), total.tolist(), number.tolist()


def _add_function_waits(part: NestedThread, scope: Rows, duration: Ints, sums: list[NodeSums]) -> None:
    """Add the time inside synchronous function runs, without the iterators called in them."""
    thread = part.thread
    rows = rows_of(thread, EventKind.FUNCTION)
    above = scope[rows]
    direct = (above >= 0) & (thread.kind[above] == EventKind.ITERATOR)
    rows = rows[direct]
    outermost = rows[thread.kind[part.parent[rows]] != EventKind.FUNCTION]
    outermost = outermost[part.owner[outermost] != NO_OWNER]
    remaining = duration.copy()
    function_scope = nearest(part, (EventKind.FUNCTION, EventKind.ITERATOR, EventKind.PRODUCE))
    inner = rows_of(thread, EventKind.ITERATOR)
    inner = inner[function_scope[inner] >= 0]
    np.subtract.at(remaining, function_scope[inner], duration[inner])
    for index, value, _ in zip(*_grouped(part.owner[outermost], np.maximum(remaining[outermost], 0)), strict=True):
        sums[index].waiting_ns += value


def _add_ops(part: NestedThread, duration: Ints, sums: list[NodeSums], labels: Sequence[str]) -> None:
    rows = rows_of(part.thread, EventKind.OP)
    rows = rows[part.owner[rows] != NO_OWNER]
    if not len(rows):
        return
    pair = part.owner[rows].astype(np.int64) * (len(labels) + 1) + part.thread.label[rows]
    own = duration.copy()
    above = nearest(part, (EventKind.OP,))[rows]
    np.subtract.at(own, above[above >= 0], duration[rows[above >= 0]])
    name = part.thread.key[rows].astype(np.int64)
    triple = pair * (int(name.max()) + 1) + name
    for key, value, number in zip(*_grouped(triple, np.maximum(own[rows], 0)), strict=True):
        key, name_key = divmod(key, int(name.max()) + 1)
        index, label = divmod(key, len(labels) + 1)
        entry = sums[index].named_ops.setdefault((name_key, labels[label]), [0, 0])
        entry[0] += number
        entry[1] += value
    for key, value, number in zip(*_grouped(pair, duration[rows]), strict=True):
        index, label = divmod(key, len(labels) + 1)
        entry = sums[index].ops.setdefault(labels[label], [0, 0])
        entry[0] += number
        entry[1] += value
        if labels[label] in PYTHON_OPS:
            sums[index].python_ns += value
