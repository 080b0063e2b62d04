"""Reads regular files only: opening a named pipe may block forever, and a device may never end.

In: a path.  Out: its bytes; `OSError` if it is not a regular file. A process that shows files to others can be confined to one
folder.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_only_below: Path | None = None


def read_regular(path: Path) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is outside the folder of `read_only_below`.
    """
    with open_regular(path) as file:
        return file.read()


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: The file cannot be read, is not a regular file, or is outside the folder of `read_only_below`.
    """
    if _only_below is not None and not is_below(path, _only_below):
        raise OSError(errno.EACCES, f"It is not in {_only_below}")
    # without O_NONBLOCK, opening a named pipe blocks until another process opens it for writing
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "It is not a regular file")
    return os.fdopen(handle, "rb")


def read_only_below(folder: Path) -> None:
    """From now on, let this process read nothing outside of a folder with `read_regular`.

    A recording names source files, and its report shows lines of them. Who may see the folder need not be allowed to see these.
    """
    global _only_below
    _only_below = real_path(folder)


def real_path(path: Path) -> Path:
    """Return the path without links; unlike `Path.resolve`, also for links in a circle."""
    return Path(os.path.realpath(path))


def is_below(path: Path, folder: Path) -> bool:
    """Return whether a path leads into a folder, all links followed.

    Args:
        path: Any path.
        folder: A folder without links in its path (`real_path`).
    """
    return real_path(path).is_relative_to(folder)


def is_regular(path: Path) -> bool:
    """Return whether `path` is a regular file or a link to one."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
