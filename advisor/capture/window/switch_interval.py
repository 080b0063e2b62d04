"""Shortens Python's switch interval for moments at which the GIL is wanted soon.

In: the moment, from a thread that wants the GIL.  Out: `sys.setswitchinterval`, and the program's own value again.

A thread that wants the GIL cannot shorten the interval itself, because this takes the GIL. Among threads that give it up and take
it again every few microseconds it can wait for it for half a second. Therefore the first of them that calls a Python function of
a pipeline after the moment shortens the interval.
"""

from __future__ import annotations

import math
import sys
import threading
import time
from typing import Any


class SwitchInterval:
    """The switch interval of the process.

    Args:
        short_s: The shortened interval; None: it is never shortened.
    """

    def __init__(self, short_s: float | None) -> None:
        self._short_s = short_s
        self._usual_s = sys.getswitchinterval()
        self._set_s = self._usual_s
        """The value that the process reported after the last change."""
        self._due_s = math.inf
        """When a call is to shorten the interval (`time.monotonic`)."""
        self._is_open = short_s is not None
        self._lock = threading.Lock()
        self.callers: set[int] = set()
        """Threads that called a Python function of a pipeline."""
        self._original: Any = None
        self._watched: Any = None

    @property
    def is_short(self) -> bool:
        """Whether the interval is as short as it may be."""
        return not self._is_open or self._set_s != self._usual_s

    def install(self) -> None:
        """Watch the calls of Python functions, which TensorFlow makes through one object."""
        script_ops = sys.modules.get("tensorflow.python.ops.script_ops")
        registry: Any = getattr(script_ops, "FuncRegistry", None)
        if registry is None or not self._is_open:
            return
        interval, original = self, registry.__call__

        def __call__(self: Any, *arguments: Any) -> Any:  # noqa: ANN401
            interval.callers.add(threading.get_ident())
            if time.monotonic() >= interval._due_s:
                interval.shorten()
            return original(self, *arguments)

        registry.__call__ = self._watched = __call__
        self._original = original

    def uninstall(self) -> None:
        """Restore the interval for good, unless the program has changed it meanwhile."""
        self._set(self._usual_s, is_last=True)
        if self._original is not None:
            registry: Any = sys.modules["tensorflow.python.ops.script_ops"].FuncRegistry
            if (
                registry.__call__ is self._watched
            ):  # else it was replaced once more, and ours does no more than pass calls on
                registry.__call__ = self._original

    def shorten(self) -> None:
        """Shorten the interval at once."""
        self._set(self._short_s)

    def restore_until(self, moment_s: float) -> None:
        """Restore the interval, and let the first call after the moment shorten it (`time.monotonic`)."""
        self._set(self._usual_s)
        self._due_s = moment_s

    def _set(self, value_s: float | None, is_last: bool = False) -> None:
        with self._lock:
            self._due_s = math.inf
            if self._is_open and value_s is not None and sys.getswitchinterval() == self._set_s:
                sys.setswitchinterval(value_s)
                self._set_s = sys.getswitchinterval()
            self._is_open = self._is_open and not is_last
