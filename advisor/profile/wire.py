"""Decodes the protobuf wire format of many `XEvent`s at once, into NumPy columns.

In: encoded events.  Out: `EventColumns`.

The first field of all events is decoded first, then the second, and so on. This works for events as profilers write them: fields
in order of their numbers, each at most once. All other events are first normalised by the protobuf library, which also detects
the damaged ones. Values of stats are decoded only on request.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.profile.part_limits import XSpaceDecodeError
from advisor.profile.xspace import message_class

Ints = npt.NDArray[np.int64]
UInts = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

_METADATA_ID, _OFFSET, _DURATION, _STAT, _OCCURRENCES = 0x08, 0x10, 0x18, 0x22, 0x28
"""Tags of `XEvent`: field number and wire type."""
_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_VALUE_TAGS = np.zeros(256, np.uint8)
_VALUE_TAGS[[0x11, 0x18, 0x20, 0x2A, 0x32, 0x38]] = [2, 3, 4, 5, 6, 7]
"""Tag of a value of `XStat` -> field number; 0: none."""
DOUBLE_VALUE, UINT64_VALUE, INT64_VALUE, STR_VALUE, BYTES_VALUE, REF_VALUE = range(2, 8)
_PADDING = bytes(24)
"""Padding after the data, so that words can be loaded at its end."""
_HIGH_BITS = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS = np.uint64(0x0101_0101_0101_0101)
_SEVEN_BITS = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_ONE = np.uint64(1)
_FOLDS = (
    (np.uint64(0x007F_007F_007F_007F), np.uint64(0x7F00_7F00_7F00_7F00), np.uint64(1)),
    (np.uint64(0x0000_3FFF_0000_3FFF), np.uint64(0x3FFF_0000_3FFF_0000), np.uint64(2)),
    (np.uint64(0x0000_0000_0FFF_FFFF), np.uint64(0x0FFF_FFFF_0000_0000), np.uint64(4)),
)
"""Masks and shifts that join the 7-bit groups of bytes to groups of 14, 28 and 56 bits."""


@dataclass(frozen=True, slots=True, eq=False)
class EventColumns:
    """Decoded events: one row per event, and one row per stat. Stats of one event keep their order; others have none."""

    metadata_id: Ints
    offset_ps: Ints
    duration_ps: Ints
    num_occurrences: Ints
    stat_event: Ints
    """The row of the event that each stat belongs to."""
    stat_id: Ints
    data: Bytes
    words: UInts
    """One word per byte of `data`; the words overlap."""
    value_begin: Ints
    """Position in `data` of the value of each stat, including its tag."""
    value_end: Ints

    def __len__(self) -> int:
        return len(self.metadata_id)

    def numbers(self, stats: Ints) -> UInts:
        """Return `uint64_value` or `int64_value` of these stats; 0 for other types. Negative values wrap around."""
        values = np.zeros(len(stats), np.uint64)
        kind = self.value_fields(stats)
        rows = np.flatnonzero((kind == UINT64_VALUE) | (kind == INT64_VALUE))
        chosen = stats[rows]
        values[rows] = self._varints(chosen)
        return values

    def references(self, stats: Ints) -> UInts:
        """Return `ref_value` of these stats; 0 for other types."""
        values = np.zeros(len(stats), np.uint64)
        rows = np.flatnonzero(self.value_fields(stats) == REF_VALUE)
        values[rows] = self._varints(stats[rows])
        return values

    def string(self, stat: int) -> bytes:
        """Return `str_value` of one stat; empty for other types."""
        if int(self.value_fields(np.array([stat]))[0]) != STR_VALUE:
            return b""
        _, size, is_valid = _read_varints(self.words, self.value_begin[[stat]] + 1)
        begin = int(self.value_begin[stat]) + 1 + int(size[0])
        if not is_valid[0]:
            raise XSpaceDecodeError("a string is damaged")
        return self.data[begin : int(self.value_end[stat])].tobytes()

    def value_fields(self, stats: Ints) -> npt.NDArray[np.uint8]:
        """Return the field numbers of the values of these stats in `XStat`; 0 without a value."""
        begin = self.value_begin[stats]
        return np.where(begin < self.value_end[stats], _VALUE_TAGS[self.data[begin]], 0).astype(np.uint8)

    def _varints(self, stats: Ints) -> UInts:
        return _read_varints(self.words, self.value_begin[stats] + 1)[0]


@dataclass(frozen=True, slots=True)
class Batch:
    """Encoded events of several lines that are decoded together, because a profile can have hundreds of lines with few events."""

    encoded: list[bytes]
    line: list[int]
    """Line number of each slice."""
    count: list[int]
    """Number of events of each slice."""


def batches(lines: Sequence[Any], size: int) -> Iterator[Batch]:
    """Yield all events of `lines` in order, in slices of at most `size` events of one line; a batch has up to twice as many."""
    batch = Batch([], [], [])
    for number, line in enumerate(lines):
        for first in range(0, len(line.events), size):
            piece = line.events[first : first + size]
            batch.encoded.extend(piece)
            batch.line.append(number)
            batch.count.append(len(piece))
            if len(batch.encoded) >= size:
                yield batch
                batch = Batch([], [], [])
    if batch.encoded:
        yield batch


def decode_events(encoded: Sequence[bytes]) -> EventColumns:
    """Decode events.

    Raises:
        XSpaceDecodeError: One of them is damaged.
    """
    columns, odd = _decode(encoded)
    if len(odd):
        normalised = list(encoded)
        for row in odd.tolist():
            normalised[row] = _normalise(encoded[row])
        columns, odd = _decode(normalised)
        if len(odd):
            raise XSpaceDecodeError("an event is damaged")
    return columns


def _normalise(encoded: bytes) -> bytes:
    """Return the event with its known fields in order."""
    from google.protobuf.message import DecodeError

    try:
        event: Any = message_class("XEvent").FromString(encoded)
    except DecodeError as error:
        raise XSpaceDecodeError(str(error)) from error
    event.DiscardUnknownFields()
    return bytes(event.SerializeToString())


def _decode(encoded: Sequence[bytes]) -> tuple[EventColumns, Ints]:
    """Return the columns, and the rows of events that need to be normalised."""
    count = len(encoded)
    joined = b"".join(encoded) + _PADDING
    end = np.cumsum(np.fromiter(map(len, encoded), np.int64, count))
    position = np.concatenate([np.zeros(min(1, count), np.int64), end[:-1]])
    data = np.frombuffer(joined, np.uint8)
    # one overlapping word per byte, so that a word at any position is one element
    words = np.ndarray((len(joined) - 8,), "<u8", joined, strides=(1,))
    is_odd = np.zeros(count, np.bool_)
    metadata_id = _read_field(data, words, position, end, _METADATA_ID, is_odd)
    offset = _read_field(data, words, position, end, _OFFSET, is_odd)
    duration = _read_field(data, words, position, end, _DURATION, is_odd)
    event, begin, finish = _find_stats(data, words, position, end, is_odd)
    before = position.copy()
    occurrences = _read_field(data, words, position, end, _OCCURRENCES, is_odd)
    # an offset and a number of occurrences exclude each other; the library decides which one counts
    is_odd |= (position != before) & (offset != 0)
    is_odd |= position != end
    stat_id, value_begin = _read_stat_ids(data, words, event, begin, finish, is_odd)
    columns = EventColumns(metadata_id, offset, duration, occurrences, event, stat_id, data, words, value_begin, finish)
    return columns, np.flatnonzero(is_odd)


def _read_field(data: Bytes, words: UInts, position: Ints, end: Ints, tag: int, is_odd: Flags) -> Ints:
    """Return the next number of each event if it has this tag, else 0; `position` is advanced past it."""
    values = np.zeros(len(position), np.int64)
    is_here = (data[position] == tag) & (position < end)
    if is_here.all():
        value, size, is_valid = _read_varints(words, position + 1)
        values = value.view(np.int64)
        position += size + 1
        is_odd |= ~is_valid | (position > end)
    else:
        rows = np.flatnonzero(is_here)
        value, size, is_valid = _read_varints(words, position[rows] + 1)
        values[rows] = value.view(np.int64)
        position[rows] += size + 1
        is_odd[rows] |= ~is_valid | (position[rows] > end[rows])
    np.minimum(position, end, out=position)
    return values


def _find_stats(data: Bytes, words: UInts, position: Ints, end: Ints, is_odd: Flags) -> tuple[Ints, Ints, Ints]:
    """Return (event, begin, end) of all encoded stats; `position` is advanced past them."""
    events, begins, ends = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    rows = np.flatnonzero((data[position] == _STAT) & (position < end))
    here, last = position[rows], end[rows]
    while len(rows):
        size, header = data[here + 1].astype(np.int64), 2
        begin = here + header
        if (size >= 0x80).any():
            length, width, is_valid = _read_varints(words, here + 1)
            size = np.minimum(length, np.uint64(2**40)).astype(np.int64)
            begin = here + 1 + width
            is_odd[rows] |= ~is_valid
        finish = begin + size
        is_too_long = finish > last
        if is_too_long.any():
            is_odd[rows] |= is_too_long
            begin, finish = np.minimum(begin, last), np.minimum(finish, last)
        events.append(rows)
        begins.append(begin)
        ends.append(finish)
        position[rows] = finish
        goes_on = (data[finish] == _STAT) & (finish < last)
        rows, here, last = rows[goes_on], finish[goes_on], last[goes_on]
    return np.concatenate(events), np.concatenate(begins), np.concatenate(ends)


def _read_stat_ids(data: Bytes, words: UInts, event: Ints, begin: Ints, end: Ints, is_odd: Flags) -> tuple[Ints, Ints]:
    """Return (number of the name, position of the value's tag) of each stat."""
    has_id = (data[begin] == _METADATA_ID) & (begin < end)
    stat_id = data[begin + 1].astype(np.int64)
    value_begin = begin + 2
    wide = np.flatnonzero((stat_id >= 0x80) & has_id)
    if len(wide):
        value, size, is_valid = _read_varints(words, begin[wide] + 1)
        stat_id[wide] = value.view(np.int64)
        value_begin[wide] = begin[wide] + 1 + size
        is_odd[event[wide[~is_valid]]] = True
    if not has_id.all():
        stat_id = np.where(has_id, stat_id, 0)
        value_begin = np.where(has_id, value_begin, begin)
    is_odd[event[value_begin > end]] = True
    value_begin = np.minimum(value_begin, end)
    # the value must have a known type and fill the rest of the stat; others are left to the library
    tag = data[value_begin]
    kind = _VALUE_TAGS[tag]
    last = data[np.maximum(end - 1, value_begin)]
    is_plain = np.where((tag & 7) == _VARINT, (last < 0x80) & (end - value_begin >= 2), True) & (kind != 0)
    is_plain &= ~((tag & 7) == _FIXED64) | (end - value_begin == 9)
    is_plain |= value_begin == end
    odd = np.flatnonzero(~is_plain)
    is_odd[event[odd]] = True
    # numbers and strings must end with their stat; numbers of one byte have been checked above
    is_short = ((tag & 7) == _VARINT) & (end - value_begin == 2)
    rest = np.flatnonzero((value_begin < end) & ((tag & 7) != _FIXED64) & ~is_short)
    value, size, is_valid = _read_varints(words, value_begin[rest] + 1)
    reached = value_begin[rest] + 1 + size
    is_length = (tag[rest] & 7) == _LENGTH
    reached = np.where(is_length, reached + np.minimum(value, np.uint64(2**40)).astype(np.int64), reached)
    is_odd[event[rest[~is_valid | (reached != end[rest])]]] = True
    return stat_id, value_begin


def _read_varints(words: UInts, position: Ints) -> tuple[UInts, Ints, Flags]:
    """Return (values, sizes in bytes, whether they end within ten bytes) of the varints at these positions."""
    word = words[position]
    stop = ~word & _HIGH_BITS
    lowest = stop & (~stop + _ONE)
    below = lowest - _ONE
    size = (((below & _LOW_BITS) * _LOW_BITS) >> np.uint64(56)).astype(np.int64)
    value = word & below & _SEVEN_BITS
    for low, high, shift in _FOLDS:
        value = (value & low) | ((value & high) >> shift)
    is_valid = np.ones(len(position), np.bool_)
    wide = np.flatnonzero(lowest == 0)
    if len(wide):
        more = words[position[wide] + 8]
        ninth, tenth = more & np.uint64(0xFF), (more >> np.uint64(8)) & np.uint64(0xFF)
        has_tenth = ninth >= np.uint64(0x80)
        value[wide] |= (ninth & np.uint64(0x7F)) << np.uint64(56)
        value[wide] |= np.where(has_tenth, (tenth & _ONE) << np.uint64(63), np.uint64(0))
        size[wide] = np.where(has_tenth, 10, 9)
        is_valid[wide] = ~has_tenth | (tenth <= _ONE)
    return value, size, is_valid
