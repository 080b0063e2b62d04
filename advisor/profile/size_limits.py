"""How many parts an encoded profile has, counted before it is decoded: empty parts cost two bytes there and hundreds here.

In: bytes of a `.xplane.pb` file.  Out: nothing, or `TooManyParts`.

Only the headers of planes, and inside them those of threads and names, are looked at; events are skipped with their thread.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_PLANES = 10_000
"""A host has some planes per device and a handful of its own; of the real profiles seen the largest has 11."""
MAX_PARTS = 2_000_000
"""Threads and names together, over all planes; the largest number in the real profiles seen is 10,809."""
_PLANES = 1
"""XSpace.planes, see xplane.proto. All parts counted are length-delimited (wire type 2)."""
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


class XSpaceDecodeError(ValueError):
    """The bytes are no XSpace."""


class TooManyParts(XSpaceDecodeError):
    """More planes, threads or names than any profiler writes."""


def check_outline(data: bytes) -> None:
    """Count; `TooManyParts` says what there is too much of. What is damaged is left to the decoder to find."""
    planes = parts = 0
    for field, begin, end in _fields(data, 0, len(data)):
        if field == _PLANES:
            planes += 1
            if planes > MAX_PLANES:
                raise TooManyParts(f"more than {MAX_PLANES:,} planes")
            for _ in _fields(data, begin, end):
                parts += 1
                if parts > MAX_PARTS:
                    raise TooManyParts(f"more than {MAX_PARTS:,} threads and names")
        else:
            parts += 1
            if parts > MAX_PARTS:
                raise TooManyParts(f"more than {MAX_PARTS:,} errors and host names")


def _fields(data: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(field number, begin, end) of every length-delimited field; ends early where the bytes are no message."""
    while position < end:
        tag, position = _varint(data, position, end)
        wire_type = tag & 7
        if wire_type == _LENGTH_DELIMITED:
            size, position = _varint(data, position, end)
            if position + size > end:
                return
            yield tag >> 3, position, position + size
            position += size
        elif wire_type == 0:
            _, position = _varint(data, position, end)
        elif wire_type in _FIXED:
            position += _FIXED[wire_type]
        else:
            return


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """(value, position behind it); a position behind `end` where it is cut off."""
    value = shift = 0
    while position < end and shift < 70:  # ten groups of seven bits
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, end + 1
