"""Sorts the activities of a timeline by whom they serve: the threads that one node waits for are its team.

In: the activities, the forest, and the root whose callers wait.  Out: `Teams`, and the group of each activity for counting.

Only teams that the wait can reach are included, so the threads of other pipelines cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.graph.nodes import Forest
from advisor.graph.thread_counts import NO_GROUP, Groups
from advisor.graph.thread_states import Activity
from advisor.model.catalog import ASYNC
from advisor.model.trace import EventKind

CONSUMER = -1
"""In place of a node: the training step, whose team are the threads that call the root for it."""
FUNCTION_PARALLEL = frozenset({"ParallelMap", "MapAndBatch", "ParallelFilter"})
"""Asynchronous types that run their function on pool threads and fetch their input in a dedicated thread."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a thread is."""

    node: int
    """The innermost node."""
    is_in_function: bool
    """Whether it waits there for a function of that node."""


@dataclass(frozen=True, slots=True)
class Team:
    """The threads that someone waits for."""

    places: dict[Place, int]
    """Where they may be -> the group of those that are there."""
    everyone: int
    """The group of all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Teams:
    """Everything that the attribution of one pipeline's wait distinguishes."""

    by_node: dict[int, Team]
    """`Node.index`, or CONSUMER."""
    running: dict[int, int]
    """Node -> the group of the pool threads that run its functions; only of pipelines in which that is asked for."""
    groups: Groups


def find_teams(activities: Sequence[Activity], forest: Forest, root: int) -> Teams:
    """Find the teams that the wait of the consumer of `root` can reach.

    Args:
        activities: What a thread can be doing; the index of an activity is its code in the moments.
        forest: The executed graph.
        root: `Node.index` of the root.
    """
    members: dict[int, dict[Place, list[int]]] = {}
    executors: dict[int, list[int]] = {}
    for code, activity in enumerate(activities):
        served = _served(activity, forest, root)
        if served is not None:
            place = Place(activity.leaf_owner, activity.is_in_function)
            members.setdefault(served, {}).setdefault(place, []).append(code)
        elif activity.top_kind == EventKind.EXECUTOR:
            executors.setdefault(activity.top_owner, []).append(code)
    reached = _reachable(members)
    waits = {place.node for node in reached for place in members[node] if waits_for_function(place, forest)}
    pipelines = {forest.nodes[node].pipeline for node in waits}
    of_activity = np.full(len(activities), NO_GROUP, np.int32)
    larger: list[int] = []

    def new_group(codes: Sequence[int]) -> int:
        of_activity[list(codes)] = len(larger)
        larger.append(NO_GROUP)
        return len(larger) - 1

    by_node = {}
    for node in reached:
        places = {place: new_group(codes) for place, codes in members[node].items()}
        everyone = next(iter(places.values()))
        if len(places) > 1:
            everyone = new_group(())
            for group in places.values():
                larger[group] = everyone
        by_node[node] = Team(places, everyone)
    running = {node: new_group(codes) for node, codes in executors.items() if forest.nodes[node].pipeline in pipelines}
    return Teams(by_node, running, Groups(of_activity, np.array(larger, np.int32)))


def waits_for_function(place: Place, forest: Forest) -> bool:
    """Return whether a thread at this place may wait for a function, which runs on pool threads."""
    return place.is_in_function or forest.nodes[place.node].base in FUNCTION_PARALLEL


def _served(activity: Activity, forest: Forest, root: int) -> int | None:
    """The node that waits for a thread with this activity, or CONSUMER; None if nothing waits for it."""
    owner = forest.nodes[activity.top_owner]
    if activity.top_kind == EventKind.PRODUCE:
        return owner.index if owner.base in ASYNC else None
    if activity.top_kind != EventKind.ITERATOR:
        return None
    if not activity.is_multi_device:
        return CONSUMER if owner.index == root else None
    # a device's generator waits for the host pipeline that the multi-device threads are pulling on
    generator = forest.consumer(owner)
    return generator.index if generator is not None and generator.base == "Generator" else None


def _reachable(members: dict[int, dict[Place, list[int]]]) -> list[int]:
    """The nodes (and CONSUMER) whose teams the consumer waits for, directly or through other teams."""
    reached = [CONSUMER] if CONSUMER in members else []
    known = set(reached)
    for node in reached:  # grows while it is read
        for place in members[node]:
            if place.node in members and place.node not in known:
                known.add(place.node)
                reached.append(place.node)
    return reached
