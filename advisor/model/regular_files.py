"""Reads files and nothing else: opening a named pipe waits for ever, and a device may never end.

In: a path.  Out: its bytes; `OSError` where it is no regular file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file. OSError where it is something else, as where it cannot be read."""
    # without O_NONBLOCK, opening a named pipe waits for somebody to write into it
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "It is not a regular file")
        return file.read()


def is_regular(path: Path) -> bool:
    """Whether `path` is a regular file, or a link to one."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
