"""The slowest calls of a pipeline's root, each with what every node did inside it: the profiler guide's "rank".

In: the joined threads and the `Timeline`.  Out: `RootCall`s, slowest first, with columns in the order of the pipeline's nodes.

Calls, total and self time are the guide's: inside that call, on the caller's thread. The wait is attributed as for the whole
window, through asynchronous boundaries (`attribution.py`), but with this one call as the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.graph.attribution import Walk, collect_states
from advisor.graph.critical_path import PASSIVE
from advisor.graph.nodes import Forest, Node
from advisor.graph.thread_states import Timeline
from advisor.model.pipeline import RootCall


def slowest_calls(
    timeline: Timeline, forest: Forest, root: Node, nodes: Sequence[Node], parallelism: Mapping[int, int]
) -> tuple[RootCall, ...]:
    """The slowest calls of `root` by its consumer; columns in the order of `nodes`."""
    found = []
    for call in timeline.slow_calls.get(root.index, ()):
        blame: Mapping[int, float] = {}
        if root.index not in timeline.fed_roots and call.end_ns > call.start_ns:
            interval = (np.array([call.start_ns], np.int64), np.array([call.end_ns], np.int64))
            states = collect_states(_cut(timeline, call.start_ns, call.end_ns), frozenset({root.index}), interval)
            blame = Walk(forest, dict(parallelism)).attribute(states).blame_ns
        inside = [call.inside.get(node.index, (0, 0, 0)) for node in nodes]
        blamed = [round(blame.get(node.index, 0.0)) for node in nodes]
        path = _path(nodes, blamed)
        found.append(
            RootCall(
                start_ns=call.start_ns,
                duration_ns=call.end_ns - call.start_ns,
                num_calls=tuple(calls for calls, _, _ in inside),
                total_ns=tuple(total for _, total, _ in inside),
                self_ns=tuple(max(0, own) for _, _, own in inside),
                blame_ns=tuple(blamed),
                is_on_path=tuple(index in path for index in range(len(nodes))),
                bottleneck=_guiltiest(nodes, blamed),
            )
        )
    return tuple(found)


def _cut(timeline: Timeline, start_ns: int, end_ns: int) -> Timeline:
    """The part of the timeline that a call needs: each thread's boundaries inside it, and the activity it begins with."""
    times, codes = [], []
    for instants, activity in zip(timeline.times, timeline.codes, strict=True):
        first = max(0, int(np.searchsorted(instants, start_ns, side="right")) - 1)
        last = int(np.searchsorted(instants, end_ns, side="right"))
        times.append(instants[first:last])
        codes.append(activity[first:last])
    return replace(timeline, times=times, codes=codes)


def _path(nodes: Sequence[Node], blamed: Sequence[int]) -> set[int]:
    """Places of the nodes on the way from the root on to the input under which most of the call's wait lies."""
    place = {node.index: index for index, node in enumerate(nodes)}
    below = list(blamed)
    for index, node in reversed(list(enumerate(nodes))):  # inputs come after their consumers
        if node.parent is not None and node.parent.index in place:
            below[place[node.parent.index]] += below[index]
    path, current = {0}, nodes[0]
    while inputs := [node for node in current.children if node.index in place and below[place[node.index]] > 0]:
        current = max(inputs, key=lambda node: below[place[node.index]])
        path.add(place[current.index])
    return path


def _guiltiest(nodes: Sequence[Node], blamed: Sequence[int]) -> int | None:
    """Place of the node with the largest share, those that only hand elements on left aside; None: no other has any."""
    active = [index for index, node in enumerate(nodes) if node.base not in PASSIVE and blamed[index] > 0]
    return max(active, key=lambda index: blamed[index], default=None)
