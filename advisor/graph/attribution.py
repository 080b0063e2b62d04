"""Attributes every nanosecond of a consumer's wait to one node, across asynchronous boundaries.

In: a `Timeline`, the forest, and the root calls to attribute.  Out: `Blame` per node, and the saturation of each parallel node.

At each moment of a root call, the caller's thread is inside some node. If that node is synchronous, it costs the time. If it is
asynchronous, it only waits, so the walk continues in the threads that work for the node at that moment, and recursively
upstream. If no thread fetches input for a node, the node waits for its own function, which runs on pool threads; the time is
then the node's own cost.

A parallel node fetches input with one thread into p call slots. If that thread fetches all the time, the input alone is the
limit. If it is idle for a share F of the time (all slots are busy), an element takes T = (fetch + function) / p. Removing the
function would save F T; removing the input would save (1 - F) T / p. The fetching time is therefore divided between function
and input in the proportion F to (1 - F) / p, which attributes 1 / (1 + (p - 1) F) of it to the input.

Moments with the same set of activities are processed once; the number of distinct sets does not grow with the window.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.join import Ints
from advisor.graph.nodes import Forest
from advisor.graph.thread_states import Activity, Timeline
from advisor.host.calibration.analysis import IDLE_NOISE, SATURATED_SHARE
from advisor.model.catalog import ASYNC
from advisor.model.trace import EventKind

FUNCTION_PARALLEL = frozenset({"ParallelMap", "MapAndBatch", "ParallelFilter"})
"""Asynchronous types that run their function on pool threads and fetch their input in a dedicated thread."""


@dataclass(frozen=True, eq=False)
class Blame:
    """Attribution of one pipeline's wait. Keys are `Node.index`."""

    blame_ns: dict[int, float]
    waited_for_ns: dict[int, float]
    """Parallel nodes: the time during which the walk reached them."""
    idle_ns: dict[int, float]
    """Parallel nodes: the part of that time during which they fetched nothing."""
    total_ns: int

    def is_saturated(self, index: int) -> bool | None:
        """Return whether all call slots of a parallel node were busy during the wait; None if the walk never reached it."""
        waited = self.waited_for_ns.get(index, 0.0)
        return self.idle_ns.get(index, 0.0) / waited >= SATURATED_SHARE.value if waited else None


@dataclass(frozen=True, eq=False)
class State:
    """A set of simultaneous activities and its total duration."""

    duration_ns: int
    waiting: tuple[Activity, ...]
    """Root calls of the pipeline."""
    workers: dict[int, tuple[Activity, ...]]
    """Asynchronous node -> the activities of its worker threads."""
    running: frozenset[int]
    """Nodes whose functions are running on pool threads."""
    feeding: dict[int, tuple[Activity, ...]]
    """Root called by multi-device threads -> the activities of those threads."""


def collect_states(timeline: Timeline, roots: frozenset[int], intervals: tuple[Ints, Ints]) -> list[State]:
    """Return the distinct states in which one of `roots` is being called.

    Args:
        timeline: The activities of all threads.
        roots: Indices of root nodes.
        intervals: (starts, ends) in nanoseconds, sorted and disjoint; time outside them is ignored.
    """
    threads = [t for t, times in enumerate(timeline.times) if len(times)]
    if not threads or not len(intervals[0]):
        return []
    random = np.random.default_rng(0)
    # additive hash of the multiset of activities; index -1 (idle) weighs nothing
    weight = np.append(random.integers(1, 2**63, len(timeline.activities), dtype=np.uint64), np.uint64(0))
    changes = []
    for t in threads:
        now = weight[timeline.codes[t]]
        changes.append(np.diff(now, prepend=np.uint64(0)))
    times = np.concatenate([timeline.times[t] for t in threads])
    order = np.argsort(times, kind="stable")
    times, keys = times[order], np.cumsum(np.concatenate(changes)[order], dtype=np.uint64)
    duration = _overlap(times, np.append(times[1:], times[-1]), intervals)
    seen = np.flatnonzero(duration)
    _, first, inverse = np.unique(keys[seen], return_index=True, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=duration[seen]).astype(np.int64)
    moments = times[seen[first]]
    table = np.full((len(moments), len(threads)), -1, np.int32)
    for column, t in enumerate(threads):
        where = np.searchsorted(timeline.times[t], moments, side="right") - 1
        table[:, column] = np.where(where >= 0, timeline.codes[t][where], -1)
    states = []
    for row, time in zip(table, total.tolist(), strict=True):
        state = _state([timeline.activities[code] for code in row.tolist() if code >= 0], time, roots)
        if state is not None:
            states.append(state)
    return states


def _overlap(start: Ints, end: Ints, intervals: tuple[Ints, Ints]) -> Ints:
    """The length of the part of each [start, end) that lies inside the intervals."""
    begin, finish = intervals
    covered = np.concatenate([[0], np.cumsum(finish - begin)]).astype(np.int64)

    def before(moment: Ints) -> Ints:
        index = np.searchsorted(begin, moment, side="right")
        inside = np.where(index > 0, np.minimum(moment, finish[index - 1]) - begin[index - 1], 0)
        whole: npt.NDArray[np.int64] = covered[np.maximum(index - 1, 0)] + inside
        return np.where(index > 0, whole, 0)

    return before(end) - before(start)


def _state(activities: list[Activity], duration_ns: int, roots: frozenset[int]) -> State | None:
    waiting = tuple(
        a for a in activities if a.top_kind == EventKind.ITERATOR and a.top_owner in roots and not a.is_multi_device
    )
    if not waiting:
        return None
    workers: dict[int, list[Activity]] = {}
    feeding: dict[int, list[Activity]] = {}
    running = set()
    for a in activities:
        if a.top_kind == EventKind.PRODUCE:
            workers.setdefault(a.top_owner, []).append(a)
        elif a.top_kind == EventKind.EXECUTOR:
            running.add(a.top_owner)
        elif a.is_multi_device:
            feeding.setdefault(a.top_owner, []).append(a)
    return State(
        duration_ns,
        waiting,
        {k: tuple(v) for k, v in workers.items()},
        frozenset(running),
        {k: tuple(v) for k, v in feeding.items()},
    )


class Walk:
    """Attributes states to nodes; see the module's docstring."""

    def __init__(self, forest: Forest, parallelism: dict[int, int]) -> None:
        self._forest, self._nodes = forest, forest.nodes
        self._parallelism = parallelism
        self._waited: Counter[int] = Counter()
        self._idle: Counter[int] = Counter()
        self._idle_share: dict[int, float] = {}

    def attribute(self, states: list[State]) -> Blame:
        """Attribute all states in two passes: the first measures the idle time of parallel nodes, the second attributes."""
        for state in states:
            self._spread(state)
        shares = {n: self._idle[n] / waited for n, waited in self._waited.items()}
        self._idle_share = {n: share for n, share in shares.items() if share >= IDLE_NOISE.value}
        waited, idle = dict(self._waited), dict(self._idle)
        blame: Counter[int] = Counter()
        for state in states:
            for index, share in self._spread(state).items():
                blame[index] += share * state.duration_ns  # type: ignore[assignment]
        return Blame(dict(blame), waited, idle, sum(s.duration_ns for s in states))  # type: ignore[arg-type]

    def _spread(self, state: State) -> dict[int, float]:
        """The share of each node in one state; the shares add up to 1."""
        shares: dict[int, float] = {}
        for call in state.waiting:
            self._descend(call, 1.0 / len(state.waiting), state, shares, frozenset())
        return shares

    def _descend(
        self, activity: Activity, share: float, state: State, shares: dict[int, float], above: frozenset[int]
    ) -> None:
        index = activity.leaf_owner
        node = self._nodes[index]
        busy: tuple[Activity, ...] = ()
        if index in above:  # only a damaged file contains a cycle
            busy = ()
        elif node.base in ASYNC:
            busy = state.workers.get(index, ())
        elif node.base == "Generator" and state.feeding:
            # a device's generator waits for the host pipeline that the multi-device threads are pulling on
            busy = tuple(work for root in self._forest.inputs(node) for work in state.feeding.get(root.index, ()))
        if node.base in FUNCTION_PARALLEL:
            self._waited[index] += state.duration_ns
            self._idle[index] += 0 if busy else state.duration_ns
        own = share
        if busy:
            input_share = share
            if node.base in FUNCTION_PARALLEL:
                slots = max(1, self._parallelism.get(index, 1))
                input_share = share / (1 + (slots - 1) * self._idle_share.get(index, 0.0))
            own = share - input_share
            for work in busy:
                if work.leaf_owner == index:
                    own += input_share / len(busy)
                else:
                    self._descend(work, input_share / len(busy), state, shares, above | {index})
        if own:
            causes = self._cause(index, activity, state)
            for cause in causes:
                shares[cause] = shares.get(cause, 0.0) + own / len(causes)

    def _cause(self, index: int, activity: Activity, state: State) -> list[int]:
        """The node itself; or, if it waits for its function and none runs, the nodes whose functions occupy the pool."""
        waits_for_function = activity.is_in_function or self._nodes[index].base in FUNCTION_PARALLEL
        if not waits_for_function or not state.running or index in state.running:
            return [index]
        pipeline = self._nodes[index].pipeline
        return [other for other in sorted(state.running) if self._nodes[other].pipeline == pipeline] or [index]
