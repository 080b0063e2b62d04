"""The steps from a node to the threads that it waits for, shared by the two passes of the attribution.

In: one block of moments, and the teams.  Out: for a node, the moments at which threads work for it; for a team, the places where
its threads are.

Columns of times run parallel to columns of moments: what arrives somewhere at each of these moments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.event_nesting import Rows
from advisor.graph.thread_counts import Block
from advisor.graph.thread_teams import CONSUMER, Place, Teams

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Arrival:
    """Time that arrives at a place."""

    place: Place
    moments: Rows
    """Positions in `Block.duration_ns`, increasing."""
    times_ns: Floats
    """The time that arrives at each of these moments."""
    above: frozenset[int]
    """The nodes that it has come through."""


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The part of an arrival during which threads work for its node."""

    rows: npt.NDArray[np.intp]
    """Rows of the arrival."""
    threads: Rows
    """How many threads work for the node at each of these rows, at least 1."""


def waiting_moments(block: Block, teams: Teams) -> tuple[Rows, Rows]:
    """Return the moments at which the consumer waits, and the number of its calls at each of them."""
    calls = block.presence(teams.by_node[CONSUMER].everyone)
    return calls.moments, calls.threads


def work_for(block: Block, teams: Teams, arrival: Arrival) -> Work:
    """Find the moments of an arrival at which its node has threads at work.

    There are none for a node that the walk has already passed, which happens only in damaged files.

    Args:
        block: A block of moments.
        teams: The teams of the pipeline's wait.
        arrival: Time that arrives at a place; its moments are those of the block.
    """
    node = arrival.place.node
    if node in arrival.above or node not in teams.by_node:
        return Work(np.zeros(0, np.intp), np.zeros(0, np.int32))
    present = block.presence(teams.by_node[node].everyone)
    rows, theirs = block.common(arrival.moments, present.moments)
    return Work(rows, present.threads[theirs])


def pass_on(
    block: Block, teams: Teams, node: int, moments: Rows, each_ns: Floats, above: frozenset[int]
) -> Iterator[Arrival]:
    """Pass time on to the threads of a team.

    Args:
        block: The moments of the columns.
        teams: All teams.
        node: The node whose team it is, or CONSUMER.
        moments: The moments at which there is something to pass on; increasing.
        each_ns: What every thread of the team receives at each of these moments.
        above: The nodes that the time has come through, with `node`.

    Yields:
        What arrives at each place where threads of the team are.
    """
    for place, group in teams.by_node[node].places.items():
        present = block.presence(group)
        mine, theirs = block.common(moments, present.moments)
        if len(mine):
            yield Arrival(place, moments[mine], each_ns[mine] * present.threads[theirs], above)
