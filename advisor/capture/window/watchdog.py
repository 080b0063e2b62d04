"""A thread that acts when there are no step boundaries: loops inside a tf.function, scripts that do not stop.

In: the `Monitor` and the threads' long calls.  Out: a window opened and closed by time; `StopScript` raised in another thread;
as the last resort the end of the process, after everything has been written.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from advisor.capture.stop_script import StopScript
from advisor.host.calibration.window import POLL_S

_EXECUTING = ("execute.py", "context.py", "interpolate_runtime_call.py", "tracing_compilation.py")


def is_executing(thread_id: int) -> bool:
    """Return whether the thread is inside TensorFlow's executor, as opposed to tracing, which runs Python code."""
    frame = sys._current_frames().get(thread_id)
    return frame is not None and frame.f_code.co_filename.endswith(_EXECUTING)


def raise_in_thread(thread_id: int) -> None:
    """Raise StopScript in another thread as soon as it runs Python code."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(StopScript))


class Watchdog:
    """Calls a function a few times per second, and ends the process after a deadline."""

    def __init__(self, poll: Callable[[int], None], on_stuck: Callable[[str], NoReturn]) -> None:
        """Create a watchdog without starting it.

        Args:
            poll: Called with the Unix time in ns.
            on_stuck: Called with the reason after the deadline; must end the process.
        """
        self._poll, self._on_stuck = poll, on_stuck
        self._deadline_ns = 0
        self._why = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="advisor-watchdog", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, which ends within `POLL_S`."""
        self._is_over.set()

    def end_within(self, seconds: float, why: str) -> None:
        """End the process after `seconds` for the reason `why` if it is still running. Only the first call has an effect."""
        if not self._deadline_ns:
            self._deadline_ns, self._why = time.time_ns() + int(seconds * 1e9), why

    def _run(self) -> None:
        while not self._is_over.wait(POLL_S.value):
            now = time.time_ns()
            if self._deadline_ns and now > self._deadline_ns:
                self._on_stuck(self._why)
            try:
                self._poll(now)
            except StopScript:
                continue
