"""Calls a function as TensorFlow's `script_ops.py` does, for the tests of the sampler."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def call_for(seconds: float, function: Callable[[], object]) -> None:
    """Call the function again and again in another thread."""
    end = time.monotonic() + seconds

    def work() -> None:
        while time.monotonic() < end:
            function()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
