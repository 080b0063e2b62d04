"""Collects facts about each iterator from its events: name, parent, parameters, fill of its buffer.

In: GetNext events, by iterator id.  Out: `IteratorFacts`.

The parameters are those of an iterator's last call in the file. The mean fill of a buffer is that of all calls. Calls without an
id are ignored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from advisor.model.trace import EventKind, IteratorFacts, Keys, Thread
from advisor.profile.safe_names import text

Parameter = str | int | float | bool

_OWN_FIELDS = frozenset({"id", "parent_id", "name", "shapes", "types", "group_id", "_r", "_p", "_pt", "_c", "_ct"})
"""Stats that are fields of `IteratorFacts` or describe the event instead of the iterator."""
UNAVAILABLE = "unavailable"
"""tf.data writes this value if it could not acquire the iterator's lock immediately (`kTraceInfoUnavailable`)."""


_LARGEST_FILL = 2**40
"""Larger values are not a number of buffered elements."""


@dataclass(slots=True)
class _LastCall:
    start_ps: int
    parent_id: int
    long_name: str
    stats: Mapping[str, Parameter]


@dataclass(slots=True)
class IteratorTable:
    """Collects facts while events are decoded; ids are uint64."""

    _last: dict[int, _LastCall] = field(default_factory=dict)
    _fill_sum: dict[int, int] = field(default_factory=dict)
    _fill_count: dict[int, int] = field(default_factory=dict)

    def is_newer(self, iterator_id: int, start_ps: int) -> bool:
        """Return whether a call with this start is later than all calls kept so far."""
        last = self._last.get(iterator_id)
        return last is None or start_ps >= last.start_ps

    def keep(
        self, iterator_id: int, start_ps: int, parent_id: int, long_name: str, stats: Mapping[str, Parameter]
    ) -> None:
        """Keep a call as the last one of its iterator. Stats that it lacks are taken from the previous call.

        Args:
            iterator_id: Id of the iterator.
            start_ps: Start of the call.
            parent_id: Id of the iterator that made the call; 0 for a root.
            long_name: Name of the event.
            stats: All stats of the event.
        """
        known = stats
        if UNAVAILABLE in stats.values():
            before = self._last[iterator_id].stats if iterator_id in self._last else {}
            known = {name: before.get(name, value) if value == UNAVAILABLE else value for name, value in stats.items()}
        self._last[iterator_id] = _LastCall(start_ps, parent_id, long_name, known)

    def add_fills(self, iterator_ids: Keys, elements: Keys) -> None:
        """Count calls that found this many elements in the buffers of these iterators."""
        ids, number, count = np.unique(iterator_ids, return_inverse=True, return_counts=True)
        if len(elements) and int(elements.max()) >= _LARGEST_FILL:  # in a damaged file; sums must not overflow
            elements = np.where(elements < _LARGEST_FILL, elements, np.uint64(0))
        total = np.zeros(len(ids), np.uint64)
        np.add.at(total, number.reshape(-1), elements)
        for iterator_id, fill, calls in zip(ids.tolist(), total.tolist(), count.tolist(), strict=True):
            self._fill_sum[iterator_id] = self._fill_sum.get(iterator_id, 0) + fill
            self._fill_count[iterator_id] = self._fill_count.get(iterator_id, 0) + calls

    def facts(self, threads: Iterable[Thread]) -> dict[int, IteratorFacts]:
        """Return the facts of all iterators, with their calls counted on the decoded threads."""
        calls = _count_calls(threads)
        return {number: self._facts(number, last, calls.get(number, 0)) for number, last in self._last.items()}

    def _facts(self, iterator_id: int, last: _LastCall, num_calls: int) -> IteratorFacts:
        fills = self._fill_count.get(iterator_id, 0)
        return IteratorFacts(
            id=iterator_id,
            parent_id=last.parent_id,
            long_name=last.long_name,
            dataset_name=str(last.stats.get("name", "")),
            num_calls=num_calls,
            shapes=str(last.stats.get("shapes", "")),
            types=str(last.stats.get("types", "")),
            parameters={name: value for name, value in last.stats.items() if name not in _OWN_FIELDS},
            buffered_elements_mean=self._fill_sum[iterator_id] / fills if fills else None,
        )


def decode_stats(stats: Iterable[Any], stat_names: Mapping[int, str]) -> dict[str, Parameter]:
    """Convert stats to a dictionary: references resolved, bytes as text, "true"/"false" as booleans.

    Stats without a name and numbers that are not finite are omitted.
    """
    decoded: dict[str, Parameter] = {}
    for stat in stats:
        name = stat_names.get(stat.metadata_id, "")
        field_name = stat.WhichOneof("value")
        if not name or field_name is None:
            continue
        value = getattr(stat, field_name)
        if field_name == "ref_value":
            value = stat_names.get(value, "")
        elif isinstance(value, bytes):
            value = text(value)
        elif isinstance(value, float) and not math.isfinite(value):
            continue
        decoded[name] = value == "true" if value in ("true", "false") else value
    return decoded


def _count_calls(threads: Iterable[Thread]) -> dict[int, int]:
    calls: dict[int, int] = {}
    for thread in threads:
        ids, counts = np.unique(thread.key[thread.kind == EventKind.ITERATOR], return_counts=True)
        for number, count in zip(ids.tolist(), counts.tolist(), strict=True):
            calls[number] = calls.get(number, 0) + count
    return calls
