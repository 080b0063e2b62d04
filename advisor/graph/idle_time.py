"""Measures how much of the time that others waited for a parallel node it fetched no input: the first pass of the attribution.

In: the teams and the moments of one pipeline's wait.  Out: `IdleTime` per parallel node.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import networkx as nx
import numpy as np

from advisor.graph.nodes import Forest
from advisor.graph.thread_counts import Moments
from advisor.graph.thread_teams import CONSUMER, FUNCTION_PARALLEL, Teams
from advisor.graph.thread_walk import pass_on, waiting_moments, work_for


@dataclass(frozen=True, slots=True, eq=False)
class IdleTime:
    """Keys are `Node.index` of the parallel nodes that others waited for; values are whole numbers of nanoseconds."""

    waited_for_ns: dict[int, float]
    """A node that several threads wait for at one moment counts once for each of them."""
    idle_ns: dict[int, float]
    """The part of it without a thread that fetches input."""

    def shares(self) -> dict[int, float]:
        """Return the idle share of each node."""
        return {node: self.idle_ns[node] / waited for node, waited in self.waited_for_ns.items()}


def measure_idle_time(teams: Teams, forest: Forest, moments: Moments) -> IdleTime:
    """Measure the idle time of the parallel nodes that the wait reaches.

    Args:
        teams: The teams of one pipeline, from `find_teams`.
        forest: The executed graph, which tells the types of the nodes.
        moments: The profiled window, cut where an activity of a thread begins or ends.
    """
    waited: defaultdict[int, float] = defaultdict(float)
    busy: defaultdict[int, float] = defaultdict(float)
    useful = _leading_to_parallel_nodes(teams, forest)
    for block in moments if CONSUMER in useful else ():
        at, _ = waiting_moments(block, teams)
        times = block.duration_ns[at].astype(np.float64)
        pending = list(pass_on(block, teams, CONSUMER, at, times, frozenset()))
        while pending:
            arrival = pending.pop()
            node = arrival.place.node
            if node not in useful:
                continue
            work = work_for(block, teams, arrival)
            times = arrival.times_ns[work.rows]
            if forest.nodes[node].base in FUNCTION_PARALLEL:
                waited[node] += float(arrival.times_ns.sum())
                busy[node] += float(times.sum())
            if len(work.rows):
                following = pass_on(block, teams, node, arrival.moments[work.rows], times, arrival.above | {node})
                pending += (further for further in following if further.place.node != node)
    return IdleTime(dict(waited), {node: time - busy[node] for node, time in waited.items()})


def _leading_to_parallel_nodes(teams: Teams, forest: Forest) -> frozenset[int]:
    """The parallel nodes, and the nodes (and CONSUMER) from which the walk can reach one."""
    walk: nx.DiGraph[int] = nx.DiGraph()
    walk.add_edges_from((node, place.node) for node, team in teams.by_node.items() for place in team.places)
    reached = {node for node, degree in walk.in_degree() if degree}
    parallel = {node for node in reached if forest.nodes[node].base in FUNCTION_PARALLEL}
    return frozenset(parallel.union(*(nx.ancestors(walk, node) for node in parallel)))
