"""Attributes every nanosecond of a consumer's wait to one node, across asynchronous boundaries.

In: a `Timeline`, the forest, and the root whose calls to attribute.  Out: `Blame` per node, and the saturation of each parallel
node.

At each moment of a root call, the caller's thread is inside some node. If that node is synchronous, it costs the time. If it is
asynchronous, it only waits, so the walk continues in the threads that work for the node at that moment, and recursively
upstream. If no thread fetches input for a node, the node waits for its own function, which runs on pool threads; the time is
then the node's own cost.

A parallel node fetches input with one thread into p call slots. If that thread fetches all the time, the input alone is the
limit. If it is idle for a share F of the time (all slots are busy), an element takes T = (fetch + function) / p. Removing the
function would save F T; removing the input would save (1 - F) T / p. The fetching time is therefore divided between function
and input in the proportion F to (1 - F) / p, which attributes 1 / (1 + (p - 1) F) of it to the input.

The walk handles all moments of a block at once. It carries columns of the time that arrives at a place (a node, and whether the
thread waits for a function there) at each moment. Threads at the same place at the same moment receive the same share, so their
number is all that the walk needs of them: it goes from a node to each place where its threads are, and not to each thread.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.graph.event_nesting import Ints, Rows
from advisor.graph.idle_time import measure_idle_time
from advisor.graph.nodes import Forest
from advisor.graph.thread_counts import MOST_COUNTS, Block, Moments
from advisor.graph.thread_states import Timeline
from advisor.graph.thread_teams import CONSUMER, Place, Teams, find_teams, waits_for_function
from advisor.graph.thread_walk import Floats, pass_on, waiting_moments, work_for
from advisor.host.calibration.analysis import IDLE_NOISE, SATURATED_SHARE


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


def attribute(
    timeline: Timeline,
    forest: Forest,
    root: int,
    intervals: tuple[Ints, Ints],
    parallelism: Mapping[int, int],
    most_counts: int = MOST_COUNTS,
) -> Blame:
    """Attribute the wait of the consumer of a root, in two passes: the first measures the idle time of parallel nodes.

    Args:
        timeline: The activities of all threads.
        forest: All pipelines of the host.
        root: Index of the root node.
        intervals: (starts, ends) in nanoseconds, sorted and disjoint; time outside them is ignored.
        parallelism: `Node.index` -> number of parallel calls.
        most_counts: Bounds the memory, see `Moments`; does not affect the result beyond rounding.

    Returns:
        The blame of every node that has any.
    """
    teams = find_teams(timeline.activities, forest, root)
    if CONSUMER not in teams.by_node:
        return Blame({}, {}, {}, 0)
    moments = Moments(timeline, teams.groups, intervals, most_counts)
    idle = measure_idle_time(teams, forest, moments)
    input_shares = {
        node: 1 / (1 + (max(1, parallelism.get(node, 1)) - 1) * share)
        for node, share in idle.shares().items()
        if share >= IDLE_NOISE.value
    }
    blame: defaultdict[int, float] = defaultdict(float)
    total_ns = 0
    for block in moments:
        at, calls = waiting_moments(block, teams)
        if len(at):
            duration_ns = block.duration_ns[at]
            total_ns += int(duration_ns.sum())
            spread = _Spread(block, teams, forest, input_shares, blame)
            spread.start(at, duration_ns / calls)
            spread.finish()
    blame_ns = {node: time for node, time in blame.items() if time}
    return Blame(blame_ns, idle.waited_for_ns, idle.idle_ns, total_ns)


class _Spread:
    """Divides the wait in one block among the nodes; adds the blame of each to `blame`."""

    def __init__(
        self,
        block: Block,
        teams: Teams,
        forest: Forest,
        input_shares: Mapping[int, float],
        blame: defaultdict[int, float],
    ) -> None:
        self._block, self._teams, self._nodes = block, teams, forest.nodes
        self._forest = forest
        self._input_shares = input_shares
        self._blame = blame
        self._pools: dict[int, _Pool] = {}

    def start(self, moments: Rows, each_ns: Floats) -> None:
        """Spread the wait, given as the time of each of the consumer's calls at each moment."""
        block, teams = self._block, self._teams
        pending = list(pass_on(block, teams, CONSUMER, moments, each_ns, frozenset()))
        while pending:
            arrival = pending.pop()
            work = work_for(block, teams, arrival)
            if not len(work.rows):
                self._charge(arrival.place, arrival.moments, arrival.times_ns)
                continue
            node = arrival.place.node
            passed_ns = arrival.times_ns[work.rows] * self._input_shares.get(node, 1.0)
            own_ns = arrival.times_ns.copy()
            own_ns[work.rows] -= passed_ns
            own = np.flatnonzero(own_ns)
            self._charge(arrival.place, arrival.moments[own], own_ns[own])
            at, each_ns = arrival.moments[work.rows], passed_ns / work.threads
            for following in pass_on(block, teams, node, at, each_ns, arrival.above | {node}):
                if following.place.node == node:  # a worker between two elements: the node's own work
                    self._charge(arrival.place, following.moments, following.times_ns)
                else:
                    pending.append(following)

    def _charge(self, place: Place, moments: Rows, times_ns: Floats) -> None:
        """Blame the node; or, while it waits for its function and none runs, the nodes whose functions occupy the pool."""
        if len(moments) and self._teams.running and waits_for_function(place, self._forest):
            moments, times_ns = self._pool(self._nodes[place.node].pipeline).take(place.node, moments, times_ns)
        self._blame[place.node] += float(times_ns.sum())

    def _pool(self, pipeline: int) -> _Pool:
        if pipeline not in self._pools:
            self._pools[pipeline] = _Pool(
                self._block,
                {node: group for node, group in self._teams.running.items() if self._nodes[node].pipeline == pipeline},
            )
        return self._pools[pipeline]

    def finish(self) -> None:
        """Blame the nodes whose functions occupied the pools."""
        for pool in self._pools.values():
            for node, time in pool.blame().items():
                self._blame[node] += time


class _Pool:
    """The functions of one pipeline on the threads of the pool, and the time that other nodes waited for these threads."""

    def __init__(self, block: Block, running: Mapping[int, int]) -> None:
        self._block = block
        self._running = {node: block.presence(group).moments for node, group in running.items()}
        number = len(block.duration_ns)
        self._num_running = np.zeros(number, np.int32)
        """Nodes (not threads) with a running function, at each moment."""
        for moments in self._running.values():
            self._num_running[moments] += 1
        self._each_ns = np.zeros(number)
        """What each running node is blamed for, at each moment."""

    def take(self, node: int, moments: Rows, times_ns: Floats) -> tuple[Rows, Floats]:
        """Blame the running nodes while `node` itself does not run; return what is left for `node`."""
        is_other = self._num_running[moments] > 0
        own, _ = self._block.common(moments, self._running.get(node, moments[:0]))
        is_other[own] = False
        others = moments[is_other]
        self._each_ns[others] += times_ns[is_other] / self._num_running[others]
        return moments[~is_other], times_ns[~is_other]

    def blame(self) -> dict[int, float]:
        """Return the blame of each running node."""
        return {node: float(self._each_ns[moments].sum()) for node, moments in self._running.items()}
