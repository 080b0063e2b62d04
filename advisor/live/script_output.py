"""Prints the output of a script above a live display, line by line.

In: two pipes, to which the script writes, and a rich console with a live display.  Out: the lines, with their colours.

Without this, the script and the display would overwrite each other. Of a line that a progress bar rewrites with carriage returns,
only its last state is printed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

LONGEST_LINE = 1 << 16
"""A longer line is printed in parts."""
_GRACE_S = 1.0
"""Time for the last lines after the script has ended. Its own child processes may keep a pipe open indefinitely."""


@contextlib.contextmanager
def printed_above(console: Console) -> Iterator[tuple[int, int]]:
    """Yield file descriptors for a script's stdout and stderr.

    A stream of this process that is no terminal is passed on as it is, so that `advisor watch train.py > log` writes the log.
    """
    with contextlib.ExitStack() as stack:
        streams = [
            stack.enter_context(_pipe_to(console)) if os.isatty(number) else number
            for number in (
                sys.__stdout__.fileno() if sys.__stdout__ else 1,
                sys.__stderr__.fileno() if sys.__stderr__ else 2,
            )
        ]
        yield streams[0], streams[1]


@contextlib.contextmanager
def _pipe_to(console: Console) -> Iterator[int]:
    read_end, write_end = os.pipe()
    thread = threading.Thread(target=_print_lines, args=(read_end, console), daemon=True)
    thread.start()
    try:
        yield write_end
    finally:
        os.close(write_end)
        thread.join(_GRACE_S)


def _print_lines(read_end: int, console: Console) -> None:
    rest = b""
    with os.fdopen(read_end, "rb", buffering=0) as pipe:
        while data := pipe.read(1 << 16):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                _print(line, console)
    if rest:
        _print(rest, console)


def _print(line: bytes, console: Console) -> None:
    text = line.decode("utf-8", errors="replace").rstrip("\r").rpartition("\r")[2]
    console.print(Text.from_ansi(text), soft_wrap=True)
