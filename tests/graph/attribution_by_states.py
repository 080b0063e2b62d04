"""The attribution written down moment by moment and thread by thread: slow, and what the fast one must agree with."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from advisor.graph.attribution import Blame
from advisor.graph.event_nesting import Ints
from advisor.graph.nodes import Forest
from advisor.graph.thread_states import Activity, Timeline
from advisor.graph.thread_teams import FUNCTION_PARALLEL
from advisor.host.calibration.analysis import IDLE_NOISE
from advisor.model.catalog import ASYNC
from advisor.model.trace import EventKind


def attribute_by_states(
    timeline: Timeline, forest: Forest, root: int, intervals: tuple[Ints, Ints], parallelism: Mapping[int, int]
) -> Blame:
    """The same as `attribute`."""
    durations: Counter[tuple[Activity, ...]] = Counter()
    for activities, duration in simultaneous_activities(timeline, intervals):
        durations[activities] += duration
    states = [State(activities, duration, root) for activities, duration in durations.items()]
    return Walk(forest, parallelism).attribute([state for state in states if state.waiting])


def simultaneous_activities(
    timeline: Timeline, intervals: tuple[Ints, Ints]
) -> Iterator[tuple[tuple[Activity, ...], int]]:
    """The activities of all threads in every moment inside the intervals, and how long it lasts."""
    changes = [
        (time, thread, code)
        for thread, (times, codes) in enumerate(zip(timeline.times, timeline.codes, strict=True))
        for time, code in zip(times.tolist(), codes.tolist(), strict=True)
    ]
    starts, ends = (column.tolist() for column in intervals)
    changes += [(bound, -1, -1) for bound in [*starts, *ends]]  # of no thread
    changes.sort(key=lambda change: change[0])  # keeps the order of one thread's changes at one instant
    current: dict[int, int] = {}
    for (time, thread, code), (next_time, _, _) in pairwise(changes):
        current[thread] = code
        interval = bisect_right(starts, time) - 1
        if next_time > time and interval >= 0 and time < ends[interval]:
            codes = sorted(code for code in current.values() if code >= 0)
            yield tuple(timeline.activities[code] for code in codes), next_time - time


class State:
    """What all threads do at once, sorted by whom they work for."""

    def __init__(self, activities: tuple[Activity, ...], duration_ns: int, root: int) -> None:
        self.duration_ns = duration_ns
        self.waiting: list[Activity] = []
        self.workers: dict[int, list[Activity]] = {}
        self.feeding: dict[int, list[Activity]] = {}
        self.running: set[int] = set()
        for a in activities:
            if a.top_kind == EventKind.PRODUCE:
                self.workers.setdefault(a.top_owner, []).append(a)
            elif a.top_kind == EventKind.EXECUTOR:
                self.running.add(a.top_owner)
            elif a.is_multi_device:
                self.feeding.setdefault(a.top_owner, []).append(a)
            elif a.top_kind == EventKind.ITERATOR and a.top_owner == root:
                self.waiting.append(a)


@dataclass
class Walk:
    """Attributes one state after the other."""

    forest: Forest
    parallelism: Mapping[int, int]

    def attribute(self, states: list[State]) -> Blame:
        self.waited: Counter[int] = Counter()
        self.idle: Counter[int] = Counter()
        self.idle_share: dict[int, float] = {}
        for state in states:
            self.spread(state)
        waited, idle = dict(self.waited), dict(self.idle)
        shares = {node: idle[node] / time for node, time in waited.items()}
        self.idle_share = {node: share for node, share in shares.items() if share >= IDLE_NOISE.value}
        blame: Counter[int] = Counter()
        for state in states:
            for node, share in self.spread(state).items():
                blame[node] += share * state.duration_ns
        return Blame(dict(blame), waited, idle, sum(state.duration_ns for state in states))

    def spread(self, state: State) -> dict[int, float]:
        """The share of each node in one state; the shares add up to 1."""
        shares: dict[int, float] = {}
        for call in state.waiting:
            self.descend(call, 1 / len(state.waiting), state, shares, frozenset())
        return shares

    def descend(
        self, activity: Activity, share: float, state: State, shares: dict[int, float], above: frozenset[int]
    ) -> None:
        index = activity.leaf_owner
        node = self.forest.nodes[index]
        busy: list[Activity] = []
        if node.base in ASYNC and index not in above:
            busy = state.workers.get(index, [])
        elif node.base == "Generator" and index not in above:
            busy = [work for root in self.forest.inputs(node) for work in state.feeding.get(root.index, [])]
        input_share = share if busy else 0
        if node.base in FUNCTION_PARALLEL:
            self.waited[index] += state.duration_ns
            self.idle[index] += 0 if busy else state.duration_ns
            slots = max(1, self.parallelism.get(index, 1))
            input_share /= 1 + (slots - 1) * self.idle_share.get(index, 0)
        own = share - input_share
        for work in busy:
            if work.leaf_owner == index:
                own += input_share / len(busy)
            else:
                self.descend(work, input_share / len(busy), state, shares, above | {index})
        causes = self.causes(activity, state)
        for cause in causes:
            shares[cause] = shares.get(cause, 0) + own / len(causes)

    def causes(self, activity: Activity, state: State) -> list[int]:
        """The node itself; or, if it waits for its function and none runs, the nodes whose functions occupy the pool."""
        node = self.forest.nodes[activity.leaf_owner]
        waits_for_function = activity.is_in_function or node.base in FUNCTION_PARALLEL
        if not waits_for_function or node.index in state.running:
            return [node.index]
        return [other for other in state.running if self.forest.nodes[other].pipeline == node.pipeline] or [node.index]
