"""Validates and limits recorded calls, so that the analysis terminates and stays linear in their number.

In: a `Recording` as read from a file.  Out: the same recording, or one with fewer calls and a warning; `AdvisorError` for calls
that form a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import networkx as nx

from advisor.model.errors import AdvisorError
from advisor.model.recording import Recording

MAX_ANALYSED_CALLS = 500
"""Maximum number of calls that are analysed. Rules compare the calls of a pipeline pairwise; real scripts record a few dozen."""

_START = ""
"""A node that stands for all consumers."""


def check_calls(recording: Recording, where: str) -> None:
    """Check that no call is, directly or indirectly, its own input or created inside itself.

    Args:
        recording: The recording to check.
        where: The name of the file, for the message.

    Raises:
        AdvisorError: The calls form a cycle.
    """
    by_id = {call.id: call for call in recording.calls}
    consumed = [(i, call.id) for call in by_id.values() for i in call.inputs if i in by_id]
    inside = [(call.id, i) for call in by_id.values() for i in (call.nested_in, call.made_by) if i in by_id]
    for edges, what in ((consumed, "its own input"), (inside, "made inside itself")):
        cyclic = _find_cycle(list(by_id), edges)
        if cyclic is not None:
            raise AdvisorError(
                f"{where} is damaged: call {cyclic} is {what}, directly or through others; capture the script again."
            )


def limit_calls(recording: Recording) -> Recording:
    """Limit the recording to `MAX_ANALYSED_CALLS` calls, with a warning if calls are left out.

    Calls that lead to a consumer are kept first, nearest to it first, together with the calls made inside them; then the
    others, the latest first: those of the window are among them.
    """
    calls = recording.calls
    if len(calls) <= MAX_ANALYSED_CALLS:
        return recording
    by_id = {call.id: call for call in calls}
    inside: dict[str, list[str]] = {}
    for call in calls:
        for owner in {call.nested_in, call.made_by} - {None}:
            inside.setdefault(owner or "", []).append(call.id)
    related: nx.DiGraph[str] = nx.DiGraph()
    """From `_START` to what consumers read, and from each call to its inputs, the calls inside it, and the call around it."""
    related.add_node(_START)
    consumers = sorted(recording.consumers, key=lambda consumer: not consumer.is_main)
    related.add_edges_from((_START, consumer.call_id) for consumer in consumers if consumer.call_id is not None)
    for call in by_id.values():
        outer = filter(None, (call.nested_in, call.made_by))
        related.add_edges_from((call.id, i) for i in (*call.inputs, *inside.get(call.id, ()), *outer))
    nearest = (i for _, i in nx.bfs_edges(related, _START) if i in by_id)
    kept = dict.fromkeys(islice(nearest, MAX_ANALYSED_CALLS))
    for call in reversed(calls):
        if len(kept) >= MAX_ANALYSED_CALLS:
            break
        kept[call.id] = None
    warning = (
        f"{len(calls):,} dataset calls were recorded; only the {len(kept):,} nearest to the consumed datasets are analysed."
        " Create datasets once, outside loops, to have all calls analysed."
    )
    return replace(
        recording,
        calls=tuple(call for call in calls if call.id in kept),
        warnings=(*recording.warnings, warning),
    )


def _find_cycle(ids: Sequence[str], edges: Sequence[tuple[str, str]]) -> str | None:
    """The first of the ids that is in a cycle; None if there is no cycle."""
    place = {call_id: number for number, call_id in enumerate(ids)}
    if all(place[source] < place[target] for source, target in edges):
        return None  # calls are recorded in the order in which they return, so this is usual, and much faster than the graph
    graph = nx.DiGraph(edges)
    components = nx.strongly_connected_components(graph)
    cyclic = (i for component in components for i in component if len(component) > 1 or graph.has_edge(i, i))
    return min(cyclic, key=place.__getitem__, default=None)
