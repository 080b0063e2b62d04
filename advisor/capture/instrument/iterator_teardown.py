"""How long TensorFlow takes to let go of an iterator, which a training waits for at the end of each epoch.

In: an iterator and what is to be told.  Out: one call with the time that it took, when the iterator goes away.

An iterator of Python's side holds that of C++ in one of its attributes. Two things happen around the moment at which that is
destroyed, both Python's own: references are told first, and then the attributes go, in the order in which they came. So a weak
reference reads the first clock, and an attribute that came last the second. The iterator's class is left as it is.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

_ATTRIBUTE = "_tfadv_release"


class _Release:
    """Lives as long as the iterator, whose last attribute it is."""

    __slots__ = ("_began_ns", "_reference", "_tell")

    def __init__(self, iterator: Any, tell: Callable[[int, int], None]) -> None:  # noqa: ANN401
        self._began_ns = 0
        self._tell = tell
        self._reference = weakref.ref(iterator, self._begin)

    def _begin(self, _reference: object) -> None:
        self._began_ns = time.time_ns()

    def __del__(self) -> None:
        if self._began_ns:  # else found by the garbage collector, in whatever order
            now = time.time_ns()
            self._tell(now, now - self._began_ns)


def watch_release(iterator: Any, tell: Callable[[int, int], None]) -> None:  # noqa: ANN401
    """Call `tell(now_ns, took_ns)` once the iterator is gone."""
    iterator.__dict__[_ATTRIBUTE] = _Release(iterator, tell)
