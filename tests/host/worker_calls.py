"""What the tests of worker processes call in them, and pass to them."""

from __future__ import annotations

import os
import signal
from multiprocessing.connection import Connection
from typing import Any


def die_in_half_an_answer(size: int) -> bytes:
    """Send half of an answer of this size, and end."""

    def send_half(self: Connection, data: Any) -> None:
        is_header = len(data) < size
        os.write(self.fileno(), bytes(data) if is_header else bytes(data)[: size // 2])
        if not is_header:
            os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = send_half  # type: ignore[attr-defined]
    return b"x" * size


class Unloadable:
    """Cannot be loaded in another process."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("not a number",)


def take(value: object) -> None:
    """Do nothing."""
