"""A copy of a folder to run in, where the kernel refuses an overlay: bounded in size, without what no script writes to.

In: a folder.  Out: its copy, and the folders below it that were left out because they are large.
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
"""A copy is made for each run. So much takes seconds."""
_MAX_COUNTED = 5
"""Times `MAX_FILES`: a folder with more is not even measured to its end."""
_TOOLS = frozenset(
    {"node_modules", "__pycache__", ".git", ".hg", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)


@dataclass(frozen=True, slots=True)
class WorkingCopy:
    """What was copied."""

    path: Path
    left_out: tuple[str, ...]
    """Large folders and files, and those of tools: relative paths. A run uses the real ones."""
    large: tuple[str, ...]
    """Those of them that a script might write to."""


def copy_folder(folder: Path, target: Path, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> WorkingCopy:
    """Copy `folder` to `target`, times and permissions included.

    While it is larger than the limits, its largest folders and files (direct children) are left out.

    Raises OSError if something cannot be copied.
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
    """Bytes and number of files; counting stops where there are too many."""
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
