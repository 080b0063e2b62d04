"""Which files a pipeline reads, and how fast their disk delivers them.

In: the arguments of calls that make datasets; a few paths.  Out: bytes per second, or None where it cannot be measured.

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
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PROBE_BYTES = 64 << 20
PROBE_S = 0.5
_CHUNK_BYTES = 1 << 20
_MIN_BYTES = 4 << 20
"""Fewer bytes are the latency of a request, not the speed of a disk."""
MAX_FILES = 64
_FILE_PARAMETERS = ("filenames", "tensors")
_MOST_NAMES = 10_000
"""Tensors of more names are not copied to be looked at."""


class DataFiles:
    """Remembers the first local files that calls are given, `MAX_FILES` at most. Never raises."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}

    def note(self, bound: Mapping[str, Any]) -> None:
        """Look through a call's bound arguments for names of files."""
        with contextlib.suppress(Exception):  # whatever the script passes: this is for information only
            for name in _FILE_PARAMETERS:
                names = itertools.islice(_texts(bound.get(name)), MAX_FILES - len(self._paths))
                self._paths |= dict.fromkeys(str(Path(path).absolute()) for path in names if Path(path).is_file())
            for pattern in _texts(bound.get("file_pattern")):
                found = itertools.islice(glob.iglob(pattern), MAX_FILES - len(self._paths))  # noqa: PTH207
                self._paths |= dict.fromkeys(str(Path(path).absolute()) for path in found if Path(path).is_file())

    @property
    def paths(self) -> tuple[str, ...]:
        """What was found, in order."""
        return tuple(self._paths)


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
        for item in value[:MAX_FILES]:
            yield from _texts(item)
    elif getattr(getattr(value, "dtype", None), "name", "") == "string" and hasattr(value, "numpy"):
        if (value.shape.num_elements() or 0) <= _MOST_NAMES:  # slicing a tensor would add ops to the script's graphs
            yield from _texts(value.numpy())
    elif type(value).__module__ == "numpy" and value.dtype.kind in "OSU":
        yield from _texts(value.reshape(-1)[:MAX_FILES].tolist())
