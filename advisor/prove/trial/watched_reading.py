"""Reads from a service that may never answer: in a thread that is left behind if nothing comes.

In: a function that reads, and when its last element came.  Out: its result, or `Stalled`.

TensorFlow's client repeats its requests for as long as a worker or a dispatcher is gone, and the call that waits for the next
element cannot be interrupted from Python.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_POLL_S = 0.5
"""Seconds between two looks at the processes while an element is awaited. Chosen, not measured."""


class Stalled(Exception):
    """No element came for too long."""


class Pulse:
    """When the last element came."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    def beat(self) -> None:
        """Note that an element has come."""
        self.last = time.perf_counter()


def watched(work: Callable[[], T], last: Callable[[], float], report: Callable[[], None], limit_s: float) -> T:
    """Run a function in a thread and return its result, or raise its exception.

    Args:
        work: Reads elements.
        last: When the last one came, as a time of `time.perf_counter`.
        report: Called now and then in this thread.
        limit_s: The longest time without an element.

    Raises:
        Stalled: It was exceeded; the thread is left behind and ends with the process.
    """
    answers: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:  # raised again in the other thread
            answers.put((None, error))

    began = time.perf_counter()
    threading.Thread(target=run, name="advisor-service-reader", daemon=True).start()
    while True:
        try:
            value, error = answers.get(timeout=_POLL_S)
        except queue.Empty:
            report()
            if time.perf_counter() - max(began, last()) > limit_s:
                raise Stalled from None
            continue
        if error is not None:
            raise error
        return value  # type: ignore[return-value]  # mypy does not relate the two halves of the pair
