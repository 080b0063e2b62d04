"""Reads regular files only: opening a named pipe may block forever, and a device may never end.

In: a path.  Out: its bytes; `OSError` if it is not a regular file.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read_regular(path: Path) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: The file cannot be read or is not a regular file.
    """
    with open_regular(path) as file:
        return file.read()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: The file cannot be read or is not a regular file.
    """
    # without O_NONBLOCK, opening a named pipe blocks until another process opens it for writing
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "It is not a regular file")
    return os.fdopen(handle, "rb")


def is_regular(path: Path) -> bool:
    """Return whether `path` is a regular file or a link to one."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
