"""Classifies events, once per name if the name is sufficient.

In: events of a host plane, as columns.  Out: their kinds, labels, and the stats that hold their keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from advisor.profile.event_kinds import STATS, classify
from advisor.profile.iterators import decode_stats
from advisor.profile.labels import Labels
from advisor.profile.wire import EventColumns, Ints
from advisor.profile.xspace import parse_event

NO_KIND = 0
"""Events that the analysis does not use."""
NO_STAT = -1
_OPEN = 255
"""Names that are not classified yet, or whose events differ."""
Class = tuple[int, int, int, int]
"""Kind, label, number of the stat for the key, number of the stat for the link."""
_NO_CLASS: Class = (NO_KIND, 0, NO_STAT, NO_STAT)


class NameClasses:
    """The classes of events by the number of their name."""

    def __init__(self, names: Mapping[int, tuple[str, str]], labels: Labels, stat_names: Mapping[int, str]) -> None:
        """Prepare the classification.

        Args:
            names: Number of a name -> (name, display name).
            labels: Receives the labels.
            stat_names: Number of a stat -> its name.
        """
        self._names = names
        self._labels = labels
        self._stat_names = stat_names
        self._stat_numbers = {name: number for number, name in stat_names.items()}
        self._ids = np.zeros(0, np.int64)
        self._kind = np.zeros(0, np.uint8)
        self._label = np.zeros(0, np.int32)
        self._key_stat = np.zeros(0, np.int64)
        self._link_stat = np.zeros(0, np.int64)
        self._add(np.array(sorted(names), np.int64))

    def of(
        self, events: EventColumns, encoded: Sequence[bytes], rows: Ints
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32], Ints, Ints]:
        """Return (kind, label, number of the key's stat, number of the link's stat) of the events in `rows`.

        Args:
            events: All events of a batch.
            encoded: The same events as encoded messages, decoded again where the name is not sufficient.
            rows: Rows of the wanted events, in both.

        Returns:
            Four columns of the length of `rows`; NO_KIND and NO_STAT where there is none.
        """
        place = self._places(events.metadata_id[rows])
        own = self._judge(encoded, rows, place)
        kind, label = self._kind[place], self._label[place]
        key_stat, link_stat = self._key_stat[place], self._link_stat[place]
        for row, (own_kind, own_label, own_key, own_link) in own.items():
            kind[row], label[row], key_stat[row], link_stat[row] = own_kind, own_label, own_key, own_link
        return kind, label, key_stat, link_stat

    def _places(self, number: Ints) -> Ints:
        """Return the position of each name's class."""
        place = self._find(number)
        if len(self._ids):
            unknown = number[self._ids[place] != number]
        else:
            unknown = number
        if len(unknown):  # events without a name, in a damaged file
            self._add(np.unique(unknown))
            place = self._find(number)
        return place

    def _find(self, number: Ints) -> Ints:
        places: Ints = np.minimum(np.searchsorted(self._ids, number), max(0, len(self._ids) - 1))
        return places

    def _add(self, ids: Ints) -> None:
        at = np.searchsorted(self._ids, ids)
        self._ids = np.insert(self._ids, at, ids)
        self._kind = np.insert(self._kind, at, _OPEN)
        self._label = np.insert(self._label, at, 0)
        self._key_stat = np.insert(self._key_stat, at, NO_STAT)
        self._link_stat = np.insert(self._link_stat, at, NO_STAT)

    def _judge(self, encoded: Sequence[bytes], rows: Ints, place: Ints) -> dict[int, Class]:
        """Classify open names in the order of their events; return the classes of individually judged events by row."""
        pending = np.flatnonzero(self._kind[place] == _OPEN)
        own: dict[int, Class] = {}
        if not len(pending):
            return own
        queue: list[tuple[int, int, list[int]]] = []
        order = pending[np.argsort(place[pending], kind="stable")]
        for same_name in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
            queue.append((int(same_name[0]), 0, same_name.tolist()))
        heapq.heapify(queue)
        while queue:
            row, turn, same_name_rows = heapq.heappop(queue)
            where = int(place[row])
            name_class, is_of_name = self._classify(int(self._ids[where]), encoded[int(rows[row])])
            if is_of_name:
                self._kind[where], self._label[where], self._key_stat[where], self._link_stat[where] = name_class
            else:
                own[row] = name_class
                if turn + 1 < len(same_name_rows):
                    heapq.heappush(queue, (same_name_rows[turn + 1], turn + 1, same_name_rows))
        return own

    def _classify(self, number: int, encoded: bytes) -> tuple[Class, bool]:
        """Return the class of one event, and whether it applies to all events with its name."""
        name, display_name = self._names.get(number, ("", ""))
        stats = decode_stats(parse_event(encoded).stats, self._stat_names)
        kind, label, is_of_name = classify(name, display_name, stats)
        if kind is None:
            return _NO_CLASS, is_of_name
        key, link = (self._stat_numbers.get(stat, NO_STAT) for stat in STATS[kind])
        return (int(kind), self._labels.number(label), key, link), is_of_name
