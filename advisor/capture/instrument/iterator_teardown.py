"""Measures how long TensorFlow takes to destroy an iterator, and destroys those that are left at the end of a stopped script.

In: an iterator and a callback.  Out: one call of it with the duration, when the iterator has been destroyed. A training loop
waits for this at the end of each epoch.

The Python iterator holds the C++ iterator in an attribute. When the Python object is destroyed, CPython first calls the
callbacks of weak references, then deletes the attributes in the order in which they were set. So the callback of a weak
reference reads the start time, and the destructor of an attribute that was set last reads the end time. The class of the
iterator is not changed.
"""

from __future__ import annotations

import gc
import threading
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


class IteratorRelease:
    """Destroys the iterators of a script that was stopped, in a thread of its own, before the interpreter ends.

    Once the interpreter ends, a thread of TensorFlow can no longer enter Python. The destructor of an iterator waits for the
    calls under way, so with a `numpy_function` or a generator it would wait for ever (seen with TensorFlow 2.21). It first
    cancels the work of its pipeline, and then also waits for the thread of AUTOTUNE, which may miss this and sleep for up to a
    minute (docs/measuring.md). That thread calls no Python, so the interpreter need not wait for it.
    """

    def __init__(self) -> None:
        """Start the thread, which waits: at exit, Python 3.12 and later start none."""
        self._begin, self._is_done = threading.Event(), threading.Event()
        self._iterators: list[Any] = []
        threading.Thread(target=self._run, name="advisor-iterator-release", daemon=True).start()

    def release(self, references: Iterable[weakref.ref[Any] | None], patience_s: float) -> None:
        """Destroy the iterators, and those that nothing refers to any more.

        Args:
            references: Iterators that the calling thread has read.
            patience_s: Time after which the call returns although iterators are still being destroyed.
        """
        self._iterators += [reference() for reference in references if reference is not None]
        self._begin.set()
        self._is_done.wait(patience_s)

    def _run(self) -> None:
        self._begin.wait()
        try:
            while self._iterators:
                getattr(self._iterators.pop(), "__dict__", {}).pop(_RESOURCE, None)
            gc.collect()
        finally:
            self._is_done.set()
