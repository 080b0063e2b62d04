"""Reads and decompresses profile files within memory limits, because a file may come from an untrusted source.

In: a path.  Out: bytes, or one `AdvisorError` sentence that names the path.
"""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from pathlib import Path
from typing import IO

from advisor.model.errors import AdvisorError
from advisor.model.locations import is_remote, reading

MAX_BYTES = 2**31 - 1
"""The largest protobuf message, and therefore the largest profile that TensorFlow can write."""
MAX_RATIO = 100
"""Maximum compression ratio of a gzipped profile. Those in tests/data have 2.2 to 3.6; deflate can reach 1032,
which is what a gzip bomb does."""
_ALWAYS_ALLOWED = 1 << 24
"""Size below which the ratio is not checked; tiny files with one repeated event compress well."""
_CHUNK = 1 << 20
_GZIP = b"\x1f\x8b"
_KINDS = {
    stat.S_ISFIFO: "a named pipe",
    stat.S_ISSOCK: "a socket",
    stat.S_ISCHR: "a device",
    stat.S_ISBLK: "a device",
    stat.S_ISDIR: "a folder",
}


def read_profile(path: Path) -> bytes:
    """Return the contents of a profile file, decompressed if it is gzipped (regardless of its name).

    Raises:
        AdvisorError: The file cannot be read, is damaged, is not a regular file, or is too large.
    """
    try:
        with reading(path):
            _check_kind(path)
            with path.open("rb") as file:
                data = _bounded(file, path) if is_remote(path) else file.read()
        return _unpacked(data, path) if data.startswith(_GZIP) else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise AdvisorError(f"{path} is a damaged or truncated gzip file: copy it again.") from error
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from error
    except MemoryError:
        raise not_enough_memory(path) from None


def not_enough_memory(path: Path) -> AdvisorError:
    """Return the error for a profile that does not fit into memory."""
    return AdvisorError(f"{path} does not fit into the free memory: read it on a larger machine.")


def _check_kind(path: Path) -> None:
    """Raise AdvisorError unless the path is a regular file: reading a pipe may block, and a device may never end."""
    facts = path.stat()
    if int(facts.st_size or 0) > MAX_BYTES:  # some servers do not send the size
        raise AdvisorError(f"{path} is larger than 2 GiB, more than a profile can be: profile fewer steps.")
    if not is_remote(path):
        for is_kind, kind in _KINDS.items():
            if is_kind(facts.st_mode):
                raise AdvisorError(f"{path} is {kind}, no profile: give a run folder, a logdir or a .xplane.pb file.")


def _bounded(file: IO[bytes], path: Path) -> bytes:
    """Read a whole file of unknown size."""
    data = io.BytesIO()
    while chunk := file.read(_CHUNK):
        if data.tell() + len(chunk) > MAX_BYTES:
            raise AdvisorError(f"{path} is larger than 2 GiB, more than a profile can be: profile fewer steps.")
        data.write(chunk)
    return data.getvalue()


def _unpacked(packed: bytes, path: Path) -> bytes:
    most = min(MAX_BYTES, max(_ALWAYS_ALLOWED, MAX_RATIO * len(packed)))
    unpacked = io.BytesIO()
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        while chunk := stream.read(_CHUNK):
            if unpacked.tell() + len(chunk) > most:
                raise AdvisorError(_too_much(path, most))
            unpacked.write(chunk)
    return unpacked.getvalue()


def _too_much(path: Path, most: int) -> str:
    if most == MAX_BYTES:
        return f"{path} unpacks to more than 2 GiB, more than a profile can be: profile fewer steps."
    return f"{path} unpacks to more than {MAX_RATIO} times its size, which no profile does: it is not read."
