"""SIGTERM and SIGHUP as an exception, so that what a block holds is let go: child processes, temporary folders.

In: nothing.  Out: contexts in which the main thread gets `Terminated`, once, where the program has left these signals alone.

Python ends at such a signal without a `finally`. A handler of the program's own, or `nohup`, stays as it is.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")
"""Not every system has all of them."""


class Terminated(KeyboardInterrupt):
    """The process is to end; all that answers Ctrl-C answers this."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number
        """Of the signal."""


@contextmanager
def raising_when_terminated() -> Iterator[None]:
    """Raise Terminated in the block, at the first signal; the next ones do not disturb its `finally`."""
    numbers = [
        number
        for number in (getattr(signal, name, None) for name in _NAMES)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL
    ]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may set handlers

    def raise_once(number: int, frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise Terminated(number)

    for number in numbers:
        signal.signal(number, raise_once)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def letting_go_when_terminated() -> Iterator[None]:
    """For a block in somebody else's program: let go of what the block holds, then die of the signal as without us."""
    try:
        with raising_when_terminated():
            yield
    except Terminated as error:
        signal.raise_signal(error.number)
        raise  # the signal is blocked
