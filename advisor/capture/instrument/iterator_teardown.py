"""Measures how long TensorFlow takes to destroy an iterator; a training loop waits for this at the end of each epoch.

In: an iterator and a callback.  Out: one call of it with the duration, when the iterator has been destroyed.

The Python iterator holds the C++ iterator in an attribute. When the Python object is destroyed, CPython first calls the
callbacks of weak references, then deletes the attributes in the order in which they were set. So the callback of a weak
reference reads the start time, and the destructor of an attribute that was set last reads the end time. The class of the
iterator is not changed.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable, Iterable
from typing import Any

_ATTRIBUTE = "_tfadv_release"
_RESOURCE = "_iterator_resource"
"""TensorFlow's private attribute that holds the C++ iterator."""


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


def release_before_exit(references: Iterable[weakref.ref[Any] | None]) -> None:
    """Destroy iterators of a script that was stopped, while Python functions of their pipelines can still return.

    Once the interpreter ends, a thread of TensorFlow can no longer enter Python. The destructor of an iterator waits for the
    calls under way, so with a `numpy_function` or a generator it would wait for ever (seen with TensorFlow 2.21).

    Args:
        references: Iterators that the calling thread has read. Those that nothing refers to any more are destroyed, too.
    """
    for iterator in [reference() for reference in references if reference is not None]:
        if iterator is not None:
            iterator.__dict__.pop(_RESOURCE, None)
    gc.collect()
