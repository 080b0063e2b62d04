"""Numbers texts such as event names, so that each is stored once.

In: texts.  Out: their numbers, in order of first occurrence.
"""

from __future__ import annotations


class Labels:
    """Texts, numbered in order of first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        """Return the number of `text`."""
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> tuple[str, ...]:
        """Return all texts in order of their numbers."""
        return tuple(self._numbers)
