"""Which files a pipeline reads, and how fast their disk delivers them.

In: the arguments of calls that make datasets; a few paths.  Out: the bytes that a call's files hold; bytes per second, or None
where it cannot be measured.

Files are read only, past the page cache (O_DIRECT), so that what is measured is the disk and nothing is pushed out of
memory; at most `PROBE_BYTES` of them and `PROBE_S` seconds. File systems without such reading (tmpfs, some network ones) are not
measured.
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

PROBE_BYTES = 64 << 20
PROBE_S = 0.5
_CHUNK_BYTES = 1 << 20
_MIN_BYTES = 4 << 20
"""Fewer bytes are the latency of a request, not the speed of a disk."""
MAX_FILES = 64
_FILE_PARAMETERS = ("filenames", "tensors")
_PATH_PARAMETERS = ("path", "data_source_name")
_MOST_NAMES = 10_000
"""No more are looked through: where there are more, each is an element rather than a file of records."""


@dataclass(frozen=True, slots=True)
class FileNames:
    """The names of files in a call's arguments."""

    mean_bytes: float
    """Mean size of what some of the names stand for; a name of no file counts as 0."""
    count: int | None
    """How many names; None: a pattern, whose names TensorFlow counts."""

    def bytes(self, cardinality: int | None) -> int | None:
        """Bytes of all files, where the call's dataset has that many elements; None: their number is not known."""
        count = cardinality if self.count is None else self.count
        return None if count is None or count < 0 else round(self.mean_bytes * count)


class DataFiles:
    """Remembers the first local files that calls are given, `MAX_FILES` at most. Never raises."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def note(self, bound: Mapping[str, Any]) -> FileNames | None:
        """Look through a call's bound arguments for names of files; None: it has none."""
        found = None
        with contextlib.suppress(Exception):  # whatever the script passes: this is for information only
            names = [text for name in _FILE_PARAMETERS for text in _texts(bound.get(name))]
            patterns = list(_texts(bound.get("file_pattern")))
            places = {len(names) * part // MAX_FILES for part in range(MAX_FILES)} if names else set()
            some = [names[place] for place in sorted(places)]  # evenly spread: their sizes stand for those of all
            for pattern in patterns:
                some += itertools.islice(glob.iglob(pattern), MAX_FILES - len(some))  # noqa: PTH207
            sizes = {path: size for path in some if (size := _regular_size(path)) is not None}
            left = MAX_FILES - len(self._paths)
            self._paths |= dict.fromkeys(itertools.islice((str(Path(path).absolute()) for path in sizes), left))
            if sizes:
                found = FileNames(sum(sizes.values()) / len(some), None if patterns else len(names))
        return found

    @property
    def paths(self) -> tuple[str, ...]:
        """What was found, in order."""
        return tuple(self._paths)


def file_names(bound: Mapping[str, Any]) -> list[str]:
    """All names in a call's bound arguments that may be names of files: given, matched by a pattern, or inside a folder."""
    found = [text for name in _FILE_PARAMETERS for text in _texts(bound.get(name))]
    for pattern in _texts(bound.get("file_pattern")):
        found += itertools.islice(glob.iglob(pattern), _MOST_NAMES)  # noqa: PTH207
    for name in _PATH_PARAMETERS:
        for text in _texts(bound.get(name)):
            inside = (os.path.join(folder, file) for folder, _, files in os.walk(text) for file in files)  # noqa: PTH118
            found += [text, *itertools.islice(inside, _MOST_NAMES)]
    return found


def disk_read_bytes_per_s(paths: Sequence[str]) -> float | None:
    """How fast these files come from their disk, the largest first; None: too few bytes, or not to be measured."""
    if not hasattr(os, "O_DIRECT"):  # macOS and Windows
        return None
    sized: list[tuple[int, str]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            if Path(path).is_file():  # a pipe would wait for its writer, and lose what is read from it
                sized.append((Path(path).stat().st_size, path))
    read, start = 0, time.perf_counter()
    with mmap.mmap(-1, _CHUNK_BYTES) as buffer:  # page-aligned, as O_DIRECT wants it
        for count in itertools.chain.from_iterable(_chunks(path, buffer) for _, path in sorted(sized, reverse=True)):
            read += count
            if read >= PROBE_BYTES or time.perf_counter() - start >= PROBE_S:
                break
    seconds = time.perf_counter() - start
    return read / seconds if read >= _MIN_BYTES and seconds > 0 else None


def _chunks(path: str, buffer: mmap.mmap) -> Iterator[int]:
    """Read a file from its beginning; yields the bytes of each read, nothing where it cannot be read so."""
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
    """The texts in an argument: a name, a list or an array of them, nested; symbolic tensors have none."""
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
        if (value.shape.num_elements() or 0) <= _MOST_NAMES:  # slicing a tensor would add ops to the script's graphs
            yield from _texts(value.numpy())
    elif type(value).__module__ == "numpy" and value.dtype.kind in "OSU":
        yield from _texts(value.reshape(-1)[:_MOST_NAMES].tolist())
