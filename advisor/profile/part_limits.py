"""Counts the parts of an encoded profile before it is decoded: empty parts cost two bytes encoded and hundreds decoded.

In: bytes of a `.xplane.pb` file.  Out: nothing, or `TooManyParts`.

Only the headers of planes, and those of threads and names inside them, are read; events are skipped together with their thread.
"""

from __future__ import annotations

from collections.abc import Iterator

MAX_PLANES = 10_000
"""Maximum number of planes. A host has a few per device and a handful of its own; the largest known real profile has 11."""
MAX_PARTS = 2_000_000
"""Maximum number of threads and names together, over all planes; the largest known real profile has 10,809."""
_PLANES = 1
"""Field number of XSpace.planes, see xplane.proto. All counted parts are length-delimited (wire type 2)."""
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}


class XSpaceDecodeError(ValueError):
    """The bytes are not an XSpace."""


class TooManyParts(XSpaceDecodeError):
    """The profile has more planes, threads or names than any profiler writes."""


def check_part_count(data: bytes) -> None:
    """Check the number of parts. Damaged data is left to the decoder.

    Args:
        data: An encoded XSpace.

    Raises:
        TooManyParts: It has more than `MAX_PLANES` planes, or more than `MAX_PARTS` threads and names.
    """
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
    """Yield (field number, begin, end) of every length-delimited field; stops early if the bytes are not a message."""
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
    """Return (value, position after it); the position is beyond `end` if the value is truncated."""
    value = shift = 0
    while position < end and shift < 70:  # ten groups of seven bits
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    return 0, end + 1
