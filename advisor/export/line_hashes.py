"""The hash by which code scanning recognises a line again after the file has changed elsewhere.

In: source text.  Out: a hash for each line, as GitHub's own upload action computes `primaryLocationLineHash`.

A polynomial rolling hash (base 37, 64 bits) runs over 100 characters, blanks and tabs left out, every line end as one line feed.
The hash of a line is that of the 100 characters from its first one on; a number counts equal hashes in the file, so that equal
lines in equal neighbourhoods differ.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator

BLOCK = 100
BASE = 37
_MASK = (1 << 64) - 1
_LEAVING = pow(BASE, BLOCK, 1 << 64)
_TAB, _LINE_FEED, _RETURN, _BLANK = 9, 10, 13, 32
_END = 0xFFFF
"""Stands behind the last character."""


def line_hashes(text: str) -> list[str]:
    """The hash of each line of `text`, the first line first; characters count as UTF-16 code units."""
    units = [*_units(text), *[0] * BLOCK]
    num_units = len(units) - BLOCK
    starts = [0, *(place + 1 for place, unit in enumerate(units[: num_units - 1]) if unit == _LINE_FEED)]
    wanted = iter(starts)
    start = next(wanted, None)
    counts: Counter[str] = Counter()
    hashes: list[str] = []
    value = 0
    for place, unit in enumerate(units):
        if start is not None and place == start + BLOCK:
            hashes.append(_counted(value, counts))
            start = next(wanted, None)
        value = (value * BASE + unit - (_LEAVING * units[place - BLOCK] if place >= BLOCK else 0)) & _MASK
    if start is not None:
        hashes.append(_counted(value, counts))
    return hashes


def _counted(value: int, counts: Counter[str]) -> str:
    name = f"{value:x}"
    counts[name] += 1
    return f"{name}:{counts[name]}"


def _units(text: str) -> Iterator[int]:
    """The code units that count, and the mark of the end."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    follows_return = False
    for unit in units:
        is_left_out = unit in (_BLANK, _TAB) or (follows_return and unit == _LINE_FEED)
        follows_return = unit == _RETURN
        if not is_left_out:
            yield _LINE_FEED if unit == _RETURN else unit
    yield _END
