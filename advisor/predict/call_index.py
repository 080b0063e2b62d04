"""Indexes recorded calls by id and by owner, once per analysis.

In: an `Analysis`.  Out: `CallIndex`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.model.pipeline import Analysis
from advisor.model.recording import Call

_MOST_KEPT = 4


@dataclass(frozen=True, slots=True, eq=False)
class CallIndex:
    """The calls of one analysis, indexed."""

    calls: tuple[Call, ...]
    by_id: Mapping[str, Call]
    inside: Mapping[str, tuple[Call, ...]]
    """Id of a call -> the calls made inside its function or by the call itself, in order."""
    place: Mapping[str, int]
    """Id of a call -> its position among all calls."""
    users: Mapping[str, tuple[Call, ...]]
    """Id of a call -> the calls that consume its dataset, in order."""


_indices: OrderedDict[int, CallIndex] = OrderedDict()
"""By identity of the tuple of calls. The index references the tuple, so that its identity is not reused."""


def index_of(analysis: Analysis) -> CallIndex:
    """Return the index of the calls of an analysis. The most recent indices are cached."""
    key = id(analysis.calls)
    index = _indices.get(key)
    if index is None or index.calls is not analysis.calls:
        index = _build(analysis.calls)
        _indices[key] = index
        while len(_indices) > _MOST_KEPT:
            _indices.popitem(last=False)
    return index


def _build(calls: tuple[Call, ...]) -> CallIndex:
    inside: dict[str, list[Call]] = {}
    for call in calls:
        for owner in dict.fromkeys((call.nested_in, call.made_by)):
            if owner is not None and owner != call.id:
                inside.setdefault(owner, []).append(call)
    users: dict[str, list[Call]] = {}
    for call in calls:
        for call_id in dict.fromkeys(call.inputs):
            users.setdefault(call_id, []).append(call)
    return CallIndex(
        calls,
        {call.id: call for call in calls},
        {owner: tuple(made) for owner, made in inside.items()},
        {call.id: place for place, call in enumerate(calls)},
        {call_id: tuple(found) for call_id, found in users.items()},
    )
