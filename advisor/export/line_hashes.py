"""Hashes by which code scanning recognises a line after the file has changed elsewhere.

In: source text.  Out: a hash for each line, computed like `primaryLocationLineHash` of GitHub's upload action.

The hash of a line is a polynomial rolling hash (base 37, 64 bits) of the 100 characters that start with the line's first one.
Spaces and tabs are ignored, and every line end counts as one line feed. A counter of equal hashes in the file is appended, so
that equal lines with equal neighbours differ.
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
"""Marks the end of the text."""


def line_hashes(text: str) -> list[str]:
    """Return the hash of each line of `text`, in order. Characters are UTF-16 code units."""
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
    """Yield the code units to be hashed, then the end mark."""
    units = array("H", text.encode("utf-16-le", "surrogatepass"))
    follows_return = False
    for unit in units:
        is_left_out = unit in (_BLANK, _TAB) or (follows_return and unit == _LINE_FEED)
        follows_return = unit == _RETURN
        if not is_left_out:
            yield _LINE_FEED if unit == _RETURN else unit
    yield _END
