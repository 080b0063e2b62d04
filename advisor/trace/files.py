"""Which profile files a path stands for, and their bytes.

In: a run folder, a logdir, a `plugins/profile/<time>` folder, or a `.xplane.pb` file (gzipped or not).  Out: paths; bytes.
Every failure is one `AdvisorError` sentence that names the path.
"""

from __future__ import annotations

import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import AdvisorError

SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
MAX_BYTES = 2**31 - 1
"""The largest message protobuf can hold, and so the largest profile TensorFlow can have written."""
_TIME = re.compile(r"\d{4}(_\d\d){5}")
"""TensorFlow names a run's folder by its time; sorting such names sorts by time."""


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """The files of one run, one per host, and how many runs there were to choose from."""

    paths: tuple[Path, ...]
    num_runs: int = 1


def find_profiles(path: Path) -> ProfileFiles:
    """The profile files that `path` stands for: of several runs the newest, with all its hosts."""
    if not path.exists():
        raise AdvisorError(f"{path} does not exist: give a run folder, a logdir or a .xplane.pb file.")
    if not path.is_dir():
        return ProfileFiles((path,))
    runs = {found.parent for pattern in _patterns() for found in path.glob(pattern) if found.is_file()}
    if not runs:
        raise AdvisorError(
            f"{path} holds no profile (no plugins/profile/*/*.xplane.pb in it): give a run folder, a logdir or a"
            " .xplane.pb file, or make one with `advisor analyze SCRIPT`."
        )
    newest = max(runs, key=lambda run: (_TIME.fullmatch(run.name) is not None, run.name))
    by_host = {
        host_of(child): child for child in sorted(newest.iterdir(), reverse=True) if child.name.endswith(SUFFIXES)
    }
    return ProfileFiles(tuple(by_host[host] for host in sorted(by_host)), len(runs))


def host_of(path: Path) -> str:
    """The host a profile file is named after."""
    return path.name.removesuffix(".gz").removesuffix(".xplane.pb")


def read_profile(path: Path) -> bytes:
    """The bytes of a profile file, unpacked if it is gzipped (whatever its name)."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise AdvisorError(f"{path} is larger than 2 GiB, more than a profile can be: profile fewer steps.")
        with path.open("rb") as file:
            is_gzipped = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if not is_gzipped:
                return file.read()
            with gzip.open(file) as unpacked:
                data = unpacked.read(MAX_BYTES + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise AdvisorError(f"{path} is a damaged or truncated gzip file: copy it again.") from error
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from error
    if len(data) > MAX_BYTES:
        raise AdvisorError(f"{path} unpacks to more than 2 GiB, more than a profile can be: profile fewer steps.")
    return data


def _patterns() -> list[str]:
    """Where profiles lie under a folder, from the run's own folder up to a logdir with one folder per role."""
    folders = ("", "*/", "profile/*/", "plugins/profile/*/", "*/plugins/profile/*/")
    return [f"{folder}*{suffix}" for folder in folders for suffix in SUFFIXES]
