"""Replaces a file at once, so that a reader never sees a part of it, and syncs it to disk where a power failure matters."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends. If the block raises, `path` is unchanged.

    Args:
        path: The file. If it exists, its permissions are kept.
        mode: Permissions of a new file, before the umask.

    Raises:
        OSError: The file cannot be written.
    """
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with _new_file(part, mode) as file:
            yield file
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def replace_synced(path: Path, data: bytes) -> None:
    """Replace a file as `replacing` does, and sync the bytes and the name to disk. A new file is readable only by the user.

    Raises:
        OSError: The file cannot be written.
    """
    with replacing(path, mode=0o600) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file, readable only by the user, and sync it to disk.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    with _new_file(path, mode=0o600) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, if the system supports it."""
    with suppress(OSError):  # Windows cannot open folders, and some file systems cannot sync them
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _new_file(path: Path, mode: int) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")
