"""Converts SIGTERM and SIGHUP into an exception, so that child processes and temporary folders are cleaned up.

The contexts raise `Terminated` once in the main thread, unless the program has its own handlers for these signals. By default,
Python ends on such a signal without running `finally` blocks. A handler of the program, or `nohup`, is left in place.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")
"""Names of the signals; some systems lack one of them."""


class Terminated(KeyboardInterrupt):
    """The process must end. As a KeyboardInterrupt, it is handled like Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(f"signal {number}")
        self.number = number
        """The signal number."""


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception comes from Ctrl-C, which the child processes on the terminal have received as well."""
    return isinstance(error, KeyboardInterrupt) and not isinstance(error, Terminated)


@contextmanager
def raising_when_terminated() -> Iterator[None]:
    """Raise Terminated in the block at the first signal; later signals are ignored so that `finally` blocks complete."""
    numbers = [
        number
        for number in (getattr(signal, name, None) for name in _NAMES)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL
    ]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may set handlers

    def raise_once(number: int, frame: FrameType | None) -> None:
        for handled in numbers:
            signal.signal(handled, signal.SIG_IGN)
        raise Terminated(number)

    for number in numbers:
        signal.signal(number, raise_once)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def cleaning_up_when_terminated() -> Iterator[None]:
    """Clean up the block at a signal and then end by that signal. For blocks in a program that is not the advisor's."""
    try:
        with raising_when_terminated():
            yield
    except Terminated as error:
        signal.raise_signal(error.number)
        raise  # the signal is blocked


class CtrlC:
    """Context manager in which Ctrl-C may be held: the first one is then only noted, and the second one interrupts.

    It is held while a report is made and written, which is all that a Ctrl-C could still lose. Elsewhere than in the main thread,
    or if the program has a handler of its own, nothing changes.
    """

    def __init__(self) -> None:
        self.has_come = False
        """Ctrl-C has come while it was held."""
        self._is_held = False

    def hold(self) -> None:
        """Hold Ctrl-C until the end of the block."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and not self._is_held and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._is_held = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.has_come:
            signal.default_int_handler(number, frame)
        self.has_come = True

    def __enter__(self) -> CtrlC:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_held = False
