"""Numbers for texts: names of events, stored once.

In: texts.  Out: their numbers, in the order in which the texts are first seen.
"""

from __future__ import annotations


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
