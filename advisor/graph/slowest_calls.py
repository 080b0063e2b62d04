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
from advisor.graph.nodes import Forest, Node
from advisor.graph.timeline import Timeline
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
        found.append(
            RootCall(
                start_ns=call.start_ns,
                duration_ns=call.end_ns - call.start_ns,
                num_calls=tuple(calls for calls, _, _ in inside),
                total_ns=tuple(total for _, total, _ in inside),
                self_ns=tuple(max(0, own) for _, _, own in inside),
                blame_ns=tuple(round(blame.get(node.index, 0.0)) for node in nodes),
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
