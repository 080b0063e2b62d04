"""Maps changed files to the run folders with their backups, for `--undo SCRIPT`.

In: paths of changed files.  Out: a small file per path below the user's state folder that lists run folders, the latest change
last. If it is lost, the run folder must be named instead.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from advisor.model.atomic_file import replace_synced
from advisor.model.codec import decode_message, encode_message


@dataclass(frozen=True, slots=True)
class _Entry:
    file: str
    run_folders: tuple[Path, ...]
    """The latest change last."""


def add(files: Sequence[Path], run_folder: Path) -> None:
    """Record that the run folder holds the backup of these files.

    Args:
        files: The files as they were named when they were changed; duplicates count once.
        run_folder: The folder whose backup is the latest one from now on.

    Raises:
        OSError: The user's state folder cannot be written; nothing is recorded.
    """
    try:
        for file in dict.fromkeys(files):
            others = (other for other in folders(file) if other != run_folder)
            _write(_place(file), _Entry(str(file), (*others, run_folder)))
    except OSError:
        remove(run_folder)
        raise


def folder() -> Path:
    """Return the folder of the index."""
    from platformdirs import user_state_path

    return user_state_path("tfdata-advisor") / "written"


def folders(file: Path) -> tuple[Path, ...]:
    """Return the run folders of the file's changes that are not undone, the latest last."""
    return _read(_place(file)).run_folders


def remove(run_folder: Path) -> None:
    """Remove a run folder whose change has been undone, from every entry that can be written."""
    for place in folder().glob("*.json"):
        entry = _read(place)
        if run_folder in entry.run_folders:
            with suppress(OSError):
                _write(place, _Entry(entry.file, tuple(other for other in entry.run_folders if other != run_folder)))


def _place(file: Path) -> Path:
    return folder() / f"{hashlib.sha256(os.fsencode(file)).hexdigest()[:24]}.json"


def _read(place: Path) -> _Entry:
    """The entry; without run folders if it does not exist or is damaged."""
    try:
        return decode_message(place.read_bytes(), _Entry)
    except (OSError, ValueError):
        return _Entry("", ())


def _write(place: Path, entry: _Entry) -> None:
    if not entry.run_folders:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    replace_synced(place, encode_message(entry).encode())
