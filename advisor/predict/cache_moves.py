"""Decides what happens to an existing cache if another one is added after it.

In: an `Analysis`, the chain of the consumer and the place of a new cache.  Out: the cache that moves to the new place, or whether
two caches would hold the same elements.

A cache that only feeds another one is read once, when the other one is filled, and then holds its elements without use.
"""

from __future__ import annotations

from collections.abc import Sequence

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis
from advisor.model.shared_text import siblings_of
from advisor.predict.call_index import graph_of

_REGROUPING = frozenset({
    "batch", "cache", "prefetch", "ragged_batch", "rebatch", "repeat", "shard", "shuffle", "skip", "take", "unbatch",
    "with_options",
})  # fmt: skip
"""Methods that only select, order or group elements, so that a cache after them would hold what one before them holds."""


def movable_cache(analysis: Analysis, chain: Sequence[Call], place: Call) -> Call | None:
    """Return the cache upstream of a place that a cache at this place replaces.

    It is one in memory, in the script's own code, whose elements nothing but the consumer's pipeline reads. A cache file is never
    moved: it would hold the elements of another place.

    Args:
        analysis: The analysis.
        chain: The consumed call and its upstream calls.
        place: The call after which a cache is added.

    Returns:
        The nearest such cache, or None.
    """
    existing = _existing(analysis, place)
    if existing is None or existing.arguments.get("filename") or not _is_own(existing):
        return None
    graph = graph_of(analysis)
    downstream = graph.downstream(existing)
    own = {call.id for call in chain}
    if not downstream <= own or _is_read_elsewhere(analysis, chain[0], existing):
        return None
    places = {sibling.id for sibling in siblings_of(place, graph.by_id)}
    others = siblings_of(existing, graph.by_id)
    return existing if all(graph.downstream(other) & places for other in others) else None


def is_held_twice(analysis: Analysis, place: Call) -> bool:
    """Return whether a cache in memory upstream of a place holds the same elements as one at this place would.

    Args:
        analysis: The run.
        place: The call after which another cache would be.
    """
    existing = _existing(analysis, place)
    if existing is None or existing.arguments.get("filename"):
        return False
    graph = graph_of(analysis)
    between = graph.downstream(existing) & {call.id for call in graph.upstream(place)}
    return all(graph.by_id[call_id].method in _REGROUPING for call_id in between)


def _existing(analysis: Analysis, place: Call) -> Call | None:
    """The nearest cache upstream of a place, at any distance."""
    return next((call for call in graph_of(analysis).upstream(place) if call.method == "cache"), None)


def _is_own(call: Call) -> bool:
    return call.site is not None and call.library is None and call.made_by is None and call.nested_in is None


def _is_read_elsewhere(analysis: Analysis, consumed: Call, existing: Call) -> bool:
    """Whether a consumer of another dataset reads the cache, which need not make a call of its own."""
    graph, recording = graph_of(analysis), analysis.recording
    for consumer in recording.consumers if recording is not None else ():
        call = graph.by_id.get(consumer.call_id or "")
        if call is not None and call.id != consumed.id and existing.id in {up.id for up in graph.upstream(call)}:
            return True
    return False
