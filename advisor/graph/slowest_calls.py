"""Describes the slowest calls of a pipeline's root and the activity of every node inside them: the profiler guide's "rank".

In: the joined threads and the `Timeline`.  Out: `RootCall`s, slowest first, with columns in the order of the pipeline's nodes.

Calls, total time and self time are defined as in the guide: inside that call, on the caller's thread. The wait is attributed
across asynchronous boundaries (`attribution.py`), with the call as the window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.graph.attribution import attribute
from advisor.graph.critical_path import PASSIVE, critical_path
from advisor.graph.nodes import Forest, Node
from advisor.graph.thread_states import Timeline
from advisor.model.pipeline import RootCall


def slowest_calls(
    timeline: Timeline, forest: Forest, nodes: Sequence[Node], parallelism: Mapping[int, int]
) -> tuple[RootCall, ...]:
    """Describe the slowest calls of a root by its consumer.

    Args:
        timeline: The activities of all threads.
        forest: All pipelines of the host.
        nodes: The nodes of the pipeline, root first; the columns of the result are in this order.
        parallelism: `Node.index` -> number of parallel calls.

    Returns:
        The calls, slowest first.
    """
    root, root_calls = nodes[0], []
    for call in timeline.slow_calls.get(root.index, ()):
        blame: Mapping[int, float] = {}
        if root.index not in timeline.fed_roots and call.end_ns > call.start_ns:
            interval = (np.array([call.start_ns], np.int64), np.array([call.end_ns], np.int64))
            during = _cut(timeline, call.start_ns, call.end_ns)
            blame = attribute(during, forest, root.index, interval, parallelism).blame_ns
        inside = [call.inside.get(node.index, (0, 0, 0)) for node in nodes]
        blamed = [round(blame.get(node.index, 0.0)) for node in nodes]
        path = critical_path(forest, nodes, {node.index: ns for node, ns in zip(nodes, blamed, strict=True)})
        root_calls.append(
            RootCall(
                start_ns=call.start_ns,
                duration_ns=call.end_ns - call.start_ns,
                num_calls=tuple(calls for calls, _, _ in inside),
                total_ns=tuple(total for _, total, _ in inside),
                self_ns=tuple(max(0, own) for _, _, own in inside),
                blame_ns=tuple(blamed),
                is_on_path=tuple(node.index in path for node in nodes),
                bottleneck=_most_blamed(nodes, blamed),
            )
        )
    return tuple(root_calls)


def _cut(timeline: Timeline, start_ns: int, end_ns: int) -> Timeline:
    """The part of the timeline that a call needs: each thread's boundaries inside it, and the activity at its start."""
    times, codes = [], []
    for instants, activity in zip(timeline.times, timeline.codes, strict=True):
        first = max(0, int(np.searchsorted(instants, start_ns, side="right")) - 1)
        last = int(np.searchsorted(instants, end_ns, side="right"))
        times.append(instants[first:last])
        codes.append(activity[first:last])
    return replace(timeline, times=times, codes=codes)


def _most_blamed(nodes: Sequence[Node], blamed: Sequence[int]) -> int | None:
    """Position of the node with the largest share, excluding passive types; None if no such node has a share."""
    active = [index for index, node in enumerate(nodes) if node.base not in PASSIVE and blamed[index] > 0]
    return max(active, key=lambda index: blamed[index], default=None)
