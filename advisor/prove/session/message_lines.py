"""Reads the messages of a child process, one per line, from a pipe that the script in the child may write to, too.

In: the pipe and the child.  Out: complete lines or messages, or None where none has come in time.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
from types import UnionType
from typing import IO, Any

from advisor.model.codec import decode_message

POLL_S = 0.1
"""How long `MessageLines.next` waits, in seconds. Chosen, not measured."""
_CHUNK_BYTES = 65536


class MessageLines:
    """The lines of one child.

    Args:
        pipe: The end to read from, unbuffered; closed by `close`.
        child: The process at the other end.
    """

    def __init__(self, pipe: IO[bytes], child: subprocess.Popen[bytes]) -> None:
        self._pipe, self._child = pipe, child
        self._rest = b""

    def next(self) -> bytes | None:
        """Return the next line without its end; None if there is none within `POLL_S`, or no more."""
        if b"\n" not in self._rest:
            ready, _, _ = select.select([self._pipe], [], [], POLL_S)
            data = self._pipe.read(_CHUNK_BYTES) if ready else b""
            if ready and not data:  # closed: its end follows
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(POLL_S)
            self._rest += data or b""
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        return line

    def message(self, kind: UnionType) -> Any:  # noqa: ANN401
        """Return the next message of one of these classes; None if there is none in time, or the script wrote the line."""
        line = self.next()
        if line is not None:
            with contextlib.suppress(ValueError):
                return decode_message(line, kind)
        return None

    def close(self) -> None:
        """Close the pipe."""
        with contextlib.suppress(OSError):
            self._pipe.close()
