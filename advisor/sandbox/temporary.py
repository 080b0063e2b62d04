"""Temporary folders that are removed after use or, if their process was killed, at the next start of the advisor.

Each folder `advisor-<purpose>-<random>` has a lock file `.advisor-<purpose>-<random>.lock` next to it, which is created first and
locked with `flock` while the folder is in use. The kernel releases the lock when the process dies, even across containers that
share the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

try:
    import fcntl
except ImportError:  # not a POSIX system: no folder counts as stale
    fcntl = None  # type: ignore[assignment]

_PREFIX = "advisor-"
_cleaned_by = 0
"""Id of the process that has removed stale folders."""
_LOCK_SUFFIX = ".lock"


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[Path]:
    """Create an empty folder and remove it at the end of the block.

    Args:
        purpose: One word that becomes part of the folder's name.
    """
    folder, lock = _make(purpose)
    try:
        yield folder
    finally:
        remove_tree(folder)
        with contextlib.suppress(OSError):
            _lock_of(folder).unlink()
        lock.close()


def remove_on_death(folder: Path, doomed: Path) -> None:
    """Register a run folder for removal if this process is killed before the run is recorded.

    Args:
        folder: A folder made by `temporary_folder`.
        doomed: The run folder. It is removed with `folder`, unless it contains a recording, which can be analyzed.
    """
    with _lock_of(folder).open("a", encoding="utf-8") as file:
        file.write(f"{doomed.absolute()}\0")


def remove_stale_folders(parent: Path | None = None) -> int:
    """Remove the temporary folders of dead processes of this user. Never raises.

    Args:
        parent: Where to look for them; None: the system's folder for temporary files.

    Returns:
        The number of removed folders. Folders that cannot be removed are left to the next start.
    """
    if fcntl is None:
        return 0
    removed = 0
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    with contextlib.suppress(OSError):
        for name in [path.name for path in parent.iterdir()]:
            if name.startswith(f".{_PREFIX}") and name.endswith(_LOCK_SUFFIX):
                with contextlib.suppress(OSError):
                    removed += _remove_if_stale(parent / name)
    return removed


def remove_tree(folder: Path) -> None:
    """Remove a folder and its content regardless of permissions, without following links or entering other file systems.

    Never raises.
    """
    with contextlib.suppress(OSError):
        _remove(folder, folder.lstat().st_dev)


def _make(purpose: str) -> tuple[Path, TextIO]:
    global _cleaned_by
    if _cleaned_by != os.getpid():
        _cleaned_by = os.getpid()
        remove_stale_folders()
    parent = Path(tempfile.gettempdir())
    while True:
        folder = parent / f"{_PREFIX}{purpose}-{os.urandom(6).hex()}"
        with contextlib.suppress(FileExistsError):
            handle = os.open(_lock_of(folder), os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            lock = os.fdopen(handle, "w")
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_linked(lock, _lock_of(folder)):  # another process may have removed it as stale between the two calls
                folder.mkdir(mode=0o700)
                return folder, lock
            lock.close()


def _remove_if_stale(lock_path: Path) -> bool:
    """Remove the folder of a lock file if no process holds the lock; return whether a folder was removed."""
    handle = os.open(lock_path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "r+", encoding="utf-8", errors="surrogateescape") as lock:
        status = os.fstat(lock.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if not _is_linked(lock, lock_path):
            return False
        folder = lock_path.with_name(lock_path.name.removeprefix(".").removesuffix(_LOCK_SUFFIX))
        for text in filter(None, lock.read().split("\0")):
            _remove_unrecorded(Path(text))
        was_there = folder.is_dir()
        if was_there and folder.lstat().st_uid == os.geteuid():
            remove_tree(folder)
        lock_path.unlink()
        return was_there


def _remove_unrecorded(folder: Path) -> None:
    if not folder.is_symlink() and folder.is_dir() and not (folder / "recording.json").exists():
        remove_tree(folder)


def _lock_of(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}{_LOCK_SUFFIX}")


def _is_linked(lock: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), path.stat())
    except OSError:
        return False


def _remove(path: Path, device: int) -> None:
    status = path.lstat()
    if status.st_dev != device:
        return
    if not stat.S_ISDIR(status.st_mode):
        path.unlink()
        return
    if status.st_mode & 0o700 != 0o700:
        path.chmod(0o700)  # overlayfs leaves a folder without permissions
    for entry in list(path.iterdir()):
        with contextlib.suppress(OSError):
            _remove(entry, device)
    path.rmdir()
