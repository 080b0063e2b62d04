"""The events of host threads, from encoded messages to columns.

In: the lines of a `/host:CPU` plane.  Out: one `Thread` per line; iterators are told to an `IteratorTable` on the way.

Event names are classified once per name, stats are read only for the kinds that need them, and events are decoded a slice
at a time, so that the memory held beside the columns does not grow with the file.
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from advisor.model.trace import EventKind, Thread
from advisor.trace.iterators import IteratorTable, decode_stats
from advisor.trace.kinds import STATS, classify
from advisor.trace.plain_text import text
from advisor.trace.xspace import MAX_PS, parse_raw_events

SLICE = 32_768
"""Events decoded at a time: about 10 MiB."""
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
_NO_STAT = -1

LAST_CALLS = 8
"""Calls of an iterator whose stats are decoded, from the last one back: about every fifth cannot tell its parallelism."""


class Labels:
    """Texts, numbered in the order in which they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """The number of `text`."""
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> tuple[str, ...]:
        """All texts, by number."""
        return tuple(self._numbers)


class _Class(NamedTuple):
    """What an event's name decides."""

    kind: int
    label: int
    key_stat: int
    link_stat: int


class PlaneDecoder:
    """Decodes the lines of one host plane."""

    def __init__(self, plane: Any, labels: Labels, iterators: IteratorTable, zero_ns: int) -> None:  # noqa: ANN401
        """`zero_ns`: what to subtract from the lines' timestamps."""
        self._labels = labels
        self._iterators = iterators
        self._zero_ns = zero_ns
        self._stat_names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
        self._stat_numbers = {name: number for number, name in self._stat_names.items()}
        self._metadata = {
            number: (text(metadata.name), text(metadata.display_name))
            for number, metadata in plane.event_metadata.items()
        }
        self.num_dropped = 0
        """Events at impossible times."""
        self._classes: dict[int, _Class | None] = {}
        """By the number of the name; None: dropped. Names that are not here are judged event by event."""

    def decode(self, line: Any) -> Thread:  # noqa: ANN401
        """One line as a `Thread`: times in nanoseconds from the profile's zero, sorted by start, longer first."""
        columns = _Columns()
        start_ns = line.timestamp_ns - self._zero_ns
        for first in range(0, len(line.events), SLICE):
            self._decode_slice(parse_raw_events(line.events[first : first + SLICE]), start_ns * 1000, columns)
        return columns.thread(line.id, text(line.name) or text(line.display_name), start_ns)

    def _judge(self, event: Any) -> _Class | None:  # noqa: ANN401
        """The class of an event whose name has none yet; remembered where it holds for the name."""
        name, display_name = self._metadata.get(event.metadata_id, ("", ""))
        kind, label, is_of_name = classify(name, display_name, decode_stats(event.stats, self._stat_names))
        found = None
        if kind is not None:
            key, link = (self._stat_numbers.get(stat, _NO_STAT) for stat in STATS[kind])
            found = _Class(int(kind), self._labels.number(label), key, link)
        if is_of_name:
            self._classes[event.metadata_id] = found
        return found

    def _decode_slice(self, events: Any, zero_ps: int, columns: _Columns) -> None:  # noqa: ANN401
        classes, iterators = self._classes, self._iterators
        fill_stat = self._stat_numbers.get("buffered_elements")
        last_calls: dict[int, deque[tuple[int, int, Any]]] = {}
        iterator_kind = int(EventKind.ITERATOR)
        # bound once: this loop runs for every event of the profile
        offsets, durations, kinds, labels, keys, links = (column.append for column in columns.all)
        for event in events:
            number = event.metadata_id
            offset, duration = event.offset_ps, event.duration_ps
            if not (0 <= duration <= MAX_PS and -MAX_PS <= offset <= MAX_PS):
                self.num_dropped += 1
                continue
            found = classes[number] if number in classes else self._judge(event)
            if found is None:
                continue
            kind, label, key_stat, link_stat = found
            if not offset and event.num_occurrences:
                continue  # a sum over many events: it has no place in time
            key = link = 0
            fill = None
            if key_stat >= 0 or link_stat >= 0:
                for stat in event.stats:
                    name = stat.metadata_id
                    if name == key_stat:
                        key = (stat.uint64_value or stat.int64_value) & _UINT64
                    elif name == link_stat:
                        link = (stat.uint64_value or stat.int64_value) & _UINT64
                    elif name == fill_stat:
                        fill = stat.int64_value or stat.uint64_value
                if kind == iterator_kind and key:
                    if fill is not None:
                        iterators.add_fill(key, fill)
                    last = last_calls.get(key)
                    if last is None:
                        last_calls[key] = deque([(offset, link, event)], maxlen=LAST_CALLS)
                    elif offset >= last[-1][0]:
                        last.append((offset, link, event))
            offsets(offset)
            durations(duration)
            kinds(kind)
            labels(label)
            keys(key)
            links(link)
        for key, calls in last_calls.items():
            for offset, link, event in calls:
                if iterators.is_newer(key, zero_ps + offset):
                    stats = decode_stats(event.stats, self._stat_names)
                    iterators.keep(key, zero_ps + offset, link, self._metadata[event.metadata_id][0], stats)


class _Columns:
    """Growing columns of one thread; times in picoseconds from the line's start."""

    def __init__(self) -> None:
        self._offset, self._duration = array("q"), array("q")
        self._kind, self._label = array("B"), array("i")
        self._key, self._link = array("Q"), array("Q")

    @property
    def all(self) -> tuple[array[int], ...]:
        """Offset and duration in ps, kind, label, key, link."""
        return self._offset, self._duration, self._kind, self._label, self._key, self._link

    def thread(self, line_id: int, name: str, start_ns: int) -> Thread:
        start_ps = np.frombuffer(self._offset, np.int64)
        end_ps = start_ps + np.frombuffer(self._duration, np.int64)
        order = np.lexsort((-end_ps, start_ps))
        return Thread(
            line_id=line_id,
            name=name,
            start_ns=start_ps[order] // 1000 + start_ns,
            end_ns=end_ps[order] // 1000 + start_ns,
            kind=np.frombuffer(self._kind, np.uint8)[order],
            label=np.frombuffer(self._label, np.int32)[order],
            key=np.frombuffer(self._key, np.uint64)[order],
            link=np.frombuffer(self._link, np.uint64)[order],
        )
