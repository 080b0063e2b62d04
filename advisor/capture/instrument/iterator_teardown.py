"""Measures how long TensorFlow takes to destroy an iterator; a training loop waits for this at the end of each epoch.

In: an iterator and a callback.  Out: one call of it with the duration, when the iterator has been destroyed.

The Python iterator holds the C++ iterator in an attribute. When the Python object is destroyed, CPython first calls the
callbacks of weak references, then deletes the attributes in the order in which they were set. So the callback of a weak
reference reads the start time, and the destructor of an attribute that was set last reads the end time. The class of the
iterator is not changed.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

_ATTRIBUTE = "_tfadv_release"


class _Release:
    """The last attribute of an iterator; it is destroyed after the C++ iterator."""

    __slots__ = ("_began_ns", "_on_released", "_reference")

    def __init__(self, iterator: Any, on_released: Callable[[int, int], None]) -> None:  # noqa: ANN401
        self._began_ns = 0
        self._on_released = on_released
        self._reference = weakref.ref(iterator, self._begin)

    def _begin(self, _reference: object) -> None:
        self._began_ns = time.time_ns()

    def __del__(self) -> None:
        if self._began_ns:  # otherwise the garbage collector destroyed the objects, in arbitrary order
            now = time.time_ns()
            self._on_released(now, now - self._began_ns)


def watch_release(iterator: Any, on_released: Callable[[int, int], None]) -> None:  # noqa: ANN401
    """Call `on_released(now_ns, took_ns)` after the iterator has been destroyed."""
    iterator.__dict__[_ATTRIBUTE] = _Release(iterator, on_released)
