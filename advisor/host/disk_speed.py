"""Finds the files that a pipeline reads, and measures the read throughput of their disk.

In: the arguments of calls that make datasets; paths of files.  Out: the total size of a call's files; bytes per second, or None
if it cannot be measured.

The files are opened read-only with O_DIRECT, which bypasses the page cache, so that the disk itself is measured and no other data
is evicted. At most `DISK_PROBE_BYTES` are read in at most `DISK_PROBE_S`. File systems without O_DIRECT (tmpfs, some network
file systems) are not measured.
"""

from __future__ import annotations

import contextlib
import glob
import itertools
import mmap
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.host.calibration.capture import DISK_PROBE_BYTES, DISK_PROBE_S, MIN_DISK_PROBE_BYTES

_CHUNK_BYTES = 1 << 20
MAX_FILES = 64
_FILE_PARAMETERS = ("filenames", "tensors")
_PATH_PARAMETERS = ("path", "data_source_name")
_MOST_NAMES = 10_000
"""Maximum number of names that are examined. A longer list rather holds one name per element than names of record files."""


@dataclass(frozen=True, slots=True)
class FileNames:
    """The file names in a call's arguments."""

    mean_bytes: float
    """Mean file size of a sample of the names; names that are not files count as 0."""
    count: int | None
    """Number of names; None for a pattern, which TensorFlow expands."""

    def bytes(self, cardinality: int | None) -> int | None:
        """Return the total size of all files in bytes; None if their number is unknown.

        Args:
            cardinality: Cardinality of the dataset that the call made; None if unknown.
        """
        count = cardinality if self.count is None else self.count
        return None if count is None or count < 0 else round(self.mean_bytes * count)


class DataFiles:
    """Collects the first `MAX_FILES` local files in the arguments of calls. Never raises."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def note(self, bound: Mapping[str, Any]) -> FileNames | None:
        """Collect the files in a call's bound arguments.

        Returns:
            The file names of this call; None if there are none.
        """
        result = None
        with contextlib.suppress(Exception):  # arguments of any type may occur, and the result is optional
            names = [text for name in _FILE_PARAMETERS for text in _texts(bound.get(name))]
            patterns = list(_texts(bound.get("file_pattern")))
            places = {len(names) * part // MAX_FILES for part in range(MAX_FILES)} if names else set()
            sample = [
                names[place] for place in sorted(places)
            ]  # evenly spread, so that their mean size is representative
            for pattern in patterns:
                sample += itertools.islice(glob.iglob(pattern), MAX_FILES - len(sample))  # noqa: PTH207
            sizes = {path: size for path in sample if (size := _regular_size(path)) is not None}
            left = MAX_FILES - len(self._paths)
            self._paths |= dict.fromkeys(itertools.islice((str(Path(path).absolute()) for path in sizes), left))
            if sizes:
                result = FileNames(sum(sizes.values()) / len(sample), None if patterns else len(names))
        return result

    @property
    def paths(self) -> tuple[str, ...]:
        """Absolute paths of the collected files, in order."""
        return tuple(self._paths)


def file_names(bound: Mapping[str, Any]) -> list[str]:
    """Return all possible file names in a call's bound arguments: given directly, matched by a pattern, or in a folder."""
    names = [text for name in _FILE_PARAMETERS for text in _texts(bound.get(name))]
    for pattern in _texts(bound.get("file_pattern")):
        names += itertools.islice(glob.iglob(pattern), _MOST_NAMES)  # noqa: PTH207
    for name in _PATH_PARAMETERS:
        for text in _texts(bound.get(name)):
            inside = (os.path.join(folder, file) for folder, _, files in os.walk(text) for file in files)  # noqa: PTH118
            names += [text, *itertools.islice(inside, _MOST_NAMES)]
    return names


def disk_read_bytes_per_s(paths: Sequence[str]) -> float | None:
    """Measure the read throughput of the disk with these files, the largest first.

    Returns:
        Bytes per second; None if the files are too small or the throughput cannot be measured.
    """
    if not hasattr(os, "O_DIRECT"):  # macOS and Windows
        return None
    sized: list[tuple[int, str]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            if Path(path).is_file():  # opening a pipe would block, and reading would consume its data
                sized.append((Path(path).stat().st_size, path))
    read, start = 0, time.perf_counter()
    with mmap.mmap(-1, _CHUNK_BYTES) as buffer:  # page-aligned, as required by O_DIRECT
        for count in itertools.chain.from_iterable(_chunks(path, buffer) for _, path in sorted(sized, reverse=True)):
            read += count
            if read >= DISK_PROBE_BYTES.value or time.perf_counter() - start >= DISK_PROBE_S.value:
                break
    seconds = time.perf_counter() - start
    return read / seconds if read >= MIN_DISK_PROBE_BYTES.value and seconds > 0 else None


def _chunks(path: str, buffer: mmap.mmap) -> Iterator[int]:
    """Read a file from its start and yield the number of bytes of each read; nothing if it does not support O_DIRECT."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_DIRECT)
        try:
            offset = 0
            while count := os.preadv(file, [buffer], offset):
                yield count
                offset += count
                if count < len(buffer):
                    return
        finally:
            os.close(file)


def _regular_size(path: str) -> int | None:
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116
        return status.st_size if stat.S_ISREG(status.st_mode) else None
    return None


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401
    """Yield the strings in an argument, which may be nested lists and arrays; symbolic tensors have no values."""
    if isinstance(value, (str, os.PathLike)):
        yield os.fspath(value)
    elif isinstance(value, bytes):
        yield os.fsdecode(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value[:_MOST_NAMES]:
            yield from _texts(item)
    elif getattr(getattr(value, "dtype", None), "name", "") == "string" and hasattr(value, "numpy"):
        if (value.shape.num_elements() or 0) <= _MOST_NAMES:  # not sliced, as that would add ops to the script's graphs
            yield from _texts(value.numpy())
    elif type(value).__module__ == "numpy" and value.dtype.kind in "OSU":
        yield from _texts(value.reshape(-1)[:_MOST_NAMES].tolist())
