"""A thread that acts where no step boundary comes by: loops inside a tf.function, scripts that will not end.

In: the `Monitor`, and which thread is inside which long call.  Out: a window opened and closed by time; StopScript raised
from outside; as the last resort the end of the process, with everything on disk.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from advisor.capture.stop_script import StopScript

POLL_S = 0.2
BLOCKED_S = 1.0
"""A call into TensorFlow's executor that lasts longer is taken for a loop, not a step."""
LOOP_SECONDS = 4.0
"""Length of a window that nobody can count steps in."""
LOOP_GRACE_S = 5.0
"""A loop inside TensorFlow cannot be interrupted; so long it may return by itself."""
STOP_GRACE_S = 60.0
"""What the script's own `finally` blocks and exit handlers may take."""
_EXECUTING = ("execute.py", "context.py", "interpolate_runtime_call.py", "tracing_compilation.py")


def is_executing(thread_id: int) -> bool:
    """Whether that thread is inside TensorFlow's executor (and not tracing, which runs Python)."""
    frame = sys._current_frames().get(thread_id)
    return frame is not None and frame.f_code.co_filename.endswith(_EXECUTING)


def raise_in_thread(thread_id: int) -> None:
    """Let StopScript arise in that thread when it next runs Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(StopScript))


class Watchdog:
    """Polls a few times a second; does nothing as long as steps come by."""

    def __init__(self, poll: Callable[[int], None], on_stuck: Callable[[str], NoReturn]) -> None:
        """`poll` is called with the time; `on_stuck` ends the process."""
        self._poll, self._on_stuck = poll, on_stuck
        self._deadline_ns = 0
        self._why = ""
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="advisor-watchdog", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer; the thread ends within `POLL_S`."""
        self._is_over.set()

    def end_within(self, seconds: float, why: str) -> None:
        """End the process if it has not ended by itself by then; the first call counts."""
        if not self._deadline_ns:
            self._deadline_ns, self._why = time.time_ns() + int(seconds * 1e9), why

    def _run(self) -> None:
        while not self._is_over.wait(POLL_S):
            now = time.time_ns()
            if self._deadline_ns and now > self._deadline_ns:
                self._on_stuck(self._why)
            try:
                self._poll(now)
            except StopScript:
                continue
