"""Tells the parent that the child makes progress, so that a slow comparison is not taken for one that hangs.

In: a call for each element.  Out: at most one message per second.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_EVERY_S = 1.0
"""Seconds between two signs of life. Chosen, not measured."""


class Heartbeat:
    """A function to call as often as there is progress."""

    def __init__(self, tell: Callable[[], None]) -> None:
        """Create it; the first call tells at once.

        Args:
            tell: Sends the message.
        """
        self._tell, self._next = tell, 0.0

    def __call__(self) -> None:
        """Note that there is progress."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self._tell()


def silent() -> None:
    """Do nothing."""
