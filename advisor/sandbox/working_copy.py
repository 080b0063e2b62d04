"""Copies a folder for a run if the kernel refuses an overlay. The copy is limited in size and leaves out folders of tools.

In: a folder.  Out: its copy, and the files and folders that are not in the copy.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1 << 30
MAX_FILES = 20_000
"""Maximum size of a copy. One is made for each run; a copy of this size takes seconds."""
_MAX_COUNTED = 5
"""Counting the files of a folder stops at this multiple of `MAX_FILES`, and the folder is not copied."""
_TOOLS = frozenset(
    {"node_modules", "__pycache__", ".git", ".hg", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """A copy of a folder."""

    path: Path
    left_out: tuple[str, ...]
    """Relative paths of files and folders that are not in the copy because they are large or belong to tools."""
    large: tuple[str, ...]
    """Those of `left_out` to which a script might write."""


def copy_folder(folder: Path, target: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> WorkingCopy:
    """Copy a folder, including modification times and permissions.

    If it exceeds the limits, its largest files and folders (direct children) are left out until it does not.

    Args:
        folder: The folder to copy.
        target: The copy, which must not exist.
        max_bytes: Maximum size of the copy.
        max_files: Maximum number of files in the copy.

    Raises:
        OSError: The folder has far too many files, or something cannot be copied.
    """
    sizes: dict[str, tuple[int, int]] = {}
    tools: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and _is_of_tools(entry):
                tools.append(entry.name)
            else:
                sizes[entry.name] = _size(Path(entry.path), max_files)
            if sum(count for _, count in sizes.values()) > _MAX_COUNTED * max_files:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(folder))
    left_out: list[str] = []
    while sizes and (
        sum(size for size, _ in sizes.values()) > max_bytes or sum(n for _, n in sizes.values()) > max_files
    ):
        largest = max(sizes, key=lambda name: (sizes[name][0] / max_bytes) + (sizes[name][1] / max_files))
        del sizes[largest]
        left_out.append(largest)
    target.mkdir(parents=True)
    for name in sizes:
        _copy(folder / name, target / name)
    shutil.copystat(folder, target)
    return WorkingCopy(target, (*tools, *left_out), tuple(left_out))


def _is_of_tools(entry: os.DirEntry[str]) -> bool:
    return entry.name in _TOOLS or (Path(entry.path) / "pyvenv.cfg").exists()


def _size(path: Path, max_files: int) -> tuple[int, int]:
    """Return (bytes, number of files) of a file or folder; counting stops when there are too many."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return (status.st_size if stat.S_ISREG(status.st_mode) else 0), 1
    size, count = 0, 1
    for parent, _, names in os.walk(path):
        for name in names:
            size += (Path(parent) / name).lstat().st_size
        count += len(names) + 1
        if count > max_files:
            break
    return size, count


def _copy(source: Path, target: Path) -> None:
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        target.mkdir()
        with os.scandir(source) as entries:
            for entry in entries:
                _copy(Path(entry.path), target / entry.name)
        shutil.copystat(source, target)
    elif source.is_file():  # no sockets, pipes, devices
        shutil.copy2(source, target)
