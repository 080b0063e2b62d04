"""Decodes the events of host threads into columns.

In: the lines of a `/host:CPU` plane.  Out: one `Thread` per line; facts about iterators are added to an `IteratorTable`.

Event names are classified once per name, stats are read only for the kinds that need them, and events are decoded in slices,
so that the memory needed in addition to the columns does not grow with the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from advisor.model.trace import EventKind, Keys, Thread
from advisor.profile.classified_events import NO_KIND, NO_STAT, NameClasses
from advisor.profile.iterators import IteratorTable, decode_stats
from advisor.profile.labels import Labels
from advisor.profile.safe_names import text
from advisor.profile.wire import Batch, EventColumns, Ints, batches, decode_events
from advisor.profile.xspace import MAX_PS, parse_event

__all__ = ["SLICE", "Labels", "PlaneDecoder"]

SLICE = 32_768
"""Number of events decoded at a time, about 10 MiB."""
_Columns = tuple[Any, ...]
"""Offset and duration in ps, kind, label, key, link."""
_NO_COLUMNS: list[Any] = [
    np.zeros(0, dtype) for dtype in (np.int64, np.int64, np.uint8, np.int32, np.uint64, np.uint64)
]

LAST_CALLS = 8
"""Number of last calls of an iterator whose stats are decoded; about every fifth call lacks its parallelism."""


class PlaneDecoder:
    """Decodes the lines of one host plane."""

    def __init__(
        self,
        plane: Any,  # noqa: ANN401
        labels: Labels,
        iterators: IteratorTable,
        zero_ns: int,
        op_names: Labels | None = None,
    ) -> None:
        """Prepare decoding. `zero_ns` is subtracted from the timestamps of the lines; `op_names` receives the names of ops."""
        self._iterators = iterators
        self._zero_ns = zero_ns
        self._stat_names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
        stat_numbers = {name: number for number, name in self._stat_names.items()}
        self._fill_stat = stat_numbers.get("buffered_elements", NO_STAT)
        self._metadata = {
            number: (text(metadata.name), text(metadata.display_name))
            for number, metadata in plane.event_metadata.items()
        }
        self._op_names = op_names
        self._classes = NameClasses(self._metadata, labels, self._stat_names)
        self.num_dropped = 0
        """Number of events with impossible times."""

    def decode(self, lines: Sequence[Any]) -> list[Thread]:
        """Return one `Thread` per line: times in nanoseconds from the profile's zero, sorted by start, longer events first."""
        start_ns = [line.timestamp_ns - self._zero_ns for line in lines]
        parts: list[list[_Columns]] = [[] for _ in lines]
        for batch in batches(lines, SLICE):
            self._decode_batch(batch, start_ns, parts)
        return [
            _thread(columns, line.id, text(line.name) or text(line.display_name), start)
            for line, start, columns in zip(lines, start_ns, parts, strict=True)
        ]

    def _decode_batch(self, batch: Batch, start_ns: Sequence[int], parts: list[list[_Columns]]) -> None:
        events = decode_events(batch.encoded)
        offset, duration = events.offset_ps, events.duration_ps
        is_possible = (duration >= 0) & (duration <= MAX_PS) & (offset >= -MAX_PS) & (offset <= MAX_PS)
        rows = np.flatnonzero(is_possible)
        self.num_dropped += len(events) - len(rows)
        kind, label, key_stat, link_stat = self._classes.of(events, batch.encoded, rows)
        # aggregated events have no start
        kept = (kind != NO_KIND) & ((offset[rows] != 0) | (events.num_occurrences[rows] == 0))
        rows, kind = rows[kept], kind[kept]
        key, link = np.zeros(len(events), np.uint64), np.zeros(len(events), np.uint64)
        for column, wanted in ((key, key_stat[kept]), (link, link_stat[kept])):
            number = np.full(len(events), NO_STAT, np.int64)
            number[rows] = wanted
            stats = np.flatnonzero((events.stat_id == number[events.stat_event]) & (events.stat_id != NO_STAT))
            column[events.stat_event[stats]] = events.numbers(stats)
        self._number_ops(events, rows[kind == EventKind.OP], key)
        piece = np.repeat(np.arange(len(batch.count)), batch.count)
        iterators = rows[(kind == EventKind.ITERATOR) & (key[rows] != 0)]
        if len(iterators):
            self._add_fills(events, iterators, key)
            self._keep_last_calls(events, batch, start_ns, iterators, piece, key, link)
        columns = (offset[rows], duration[rows], kind, label[kept], key[rows], link[rows])
        bounds = np.searchsorted(piece[rows], np.arange(len(batch.count) + 1)).tolist()
        for line, begin, end in zip(batch.line, bounds, bounds[1:], strict=False):
            parts[line].append(tuple(column[begin:end] for column in columns))

    def _number_ops(self, events: EventColumns, rows: Ints, key: Keys) -> None:
        """Set the keys of op events to 1 + the number of the op's name, which is the name of the event up to the colon."""
        if self._op_names is None or not len(rows):
            return
        metadata, place = np.unique(events.metadata_id[rows], return_inverse=True)
        names = [self._metadata.get(number, ("", ""))[0].rpartition(":")[0] for number in metadata.tolist()]
        numbers = np.array([self._op_names.number(name) + 1 if name else 0 for name in names], np.uint64)
        key[rows] = numbers[place.reshape(-1)]

    def _add_fills(self, events: EventColumns, iterators: Ints, key: Keys) -> None:
        """Count the fill of the iterators' buffers at these calls."""
        if self._fill_stat == NO_STAT:
            return
        is_wanted = np.zeros(len(events), np.bool_)
        is_wanted[iterators] = True
        stats = np.flatnonzero((events.stat_id == self._fill_stat) & is_wanted[events.stat_event])
        fill, has_fill = np.zeros(len(events), np.uint64), np.zeros(len(events), np.bool_)
        fill[events.stat_event[stats]] = events.numbers(stats)
        has_fill[events.stat_event[stats]] = True
        rows = np.flatnonzero(has_fill)
        self._iterators.add_fills(key[rows], fill[rows])

    def _keep_last_calls(
        self,
        events: EventColumns,
        batch: Batch,
        start_ns: Sequence[int],
        iterators: Ints,
        piece: Ints,
        key: Keys,
        link: Keys,
    ) -> None:
        """Decode all stats of the last calls of each iterator in each slice."""
        _, number = np.unique(key[iterators], return_inverse=True)
        group = piece[iterators] * len(iterators) + number.reshape(-1)
        for row in _last_calls(group, events.offset_ps[iterators]).tolist():
            event = int(iterators[row])
            start_ps = start_ns[batch.line[piece[event]]] * 1000 + int(events.offset_ps[event])
            iterator_id = int(key[event])
            if self._iterators.is_newer(iterator_id, start_ps):
                stats = decode_stats(parse_event(batch.encoded[event]).stats, self._stat_names)
                name, _ = self._metadata[int(events.metadata_id[event])]
                self._iterators.keep(iterator_id, start_ps, int(link[event]), name, stats)


def _last_calls(group: Ints, offset: Ints) -> Ints:
    """Return the rows of the last `LAST_CALLS` calls of each group, in order; groups in the order of their first rows.

    A call that began before one that was written earlier is not counted.
    """
    order = np.argsort(group, kind="stable")
    _, rank = np.unique(offset, return_inverse=True)
    is_first = np.diff(group[order], prepend=-1) != 0
    ordinal = np.cumsum(is_first) - 1
    time = ordinal * len(group) + rank.reshape(-1)[order]
    in_order = time == np.maximum.accumulate(time)
    order, ordinal = order[in_order], ordinal[in_order]
    end = np.searchsorted(ordinal, ordinal, side="right")
    is_last = end - np.arange(len(order)) <= LAST_CALLS
    # the first row of a group is always in order
    first_row = order[np.flatnonzero(np.diff(ordinal, prepend=-1))]
    chosen, ordinal = order[is_last], ordinal[is_last]
    ranked: Ints = chosen[np.argsort(first_row[ordinal], kind="stable")]
    return ranked


def _thread(parts: Sequence[_Columns], line_id: int, name: str, start_ns: int) -> Thread:
    """Return the sorted columns of one line. Times are in picoseconds from the start of the line."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else _NO_COLUMNS
    start_ps, duration_ps, kind, label, key, link = columns
    end_ps = start_ps + duration_ps
    order = np.lexsort((-end_ps, start_ps))
    return Thread(
        line_id=line_id,
        name=name,
        start_ns=start_ps[order] // 1000 + start_ns,
        end_ns=end_ps[order] // 1000 + start_ns,
        kind=kind[order],
        label=label[order],
        key=key[order],
        link=link[order],
    )
