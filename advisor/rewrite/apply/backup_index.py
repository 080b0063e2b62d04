"""Maps changed files to the run folders with their backups, for `--undo SCRIPT`.

In: paths of changed files.  Out: a small file per path below the user's state folder that lists run folders, the latest change
last. If it is lost, the run folder must be named instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from advisor.model.atomic_file import replace_synced


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
            others = [other for other in folders(file) if other != run_folder]
            _write(_place(file), str(file), [*others, run_folder])
    except OSError:
        remove(run_folder)
        raise


def folder() -> Path:
    """Return the folder of the index."""
    from platformdirs import user_state_path

    return user_state_path("tfdata-advisor") / "written"


def folders(file: Path) -> list[Path]:
    """Return the run folders of the file's changes that are not undone, the latest last."""
    return _read(_place(file))[1]


def remove(run_folder: Path) -> None:
    """Remove a run folder whose change has been undone, from every entry that can be written."""
    for place in folder().glob("*.json"):
        file, known = _read(place)
        if run_folder in known:
            with suppress(OSError):
                _write(place, file, [other for other in known if other != run_folder])


def _place(file: Path) -> Path:
    return folder() / f"{hashlib.sha256(str(file).encode()).hexdigest()[:24]}.json"


def _read(place: Path) -> tuple[str, list[Path]]:
    """The changed file and its run folders; none if the entry does not exist or is damaged."""
    try:
        content = json.loads(place.read_bytes())
        return str(content["file"]), [Path(run_folder) for run_folder in content["run_folders"]]
    except (OSError, ValueError, KeyError, TypeError):
        return "", []


def _write(place: Path, file: str, run_folders: list[Path]) -> None:
    if not run_folders:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    replace_synced(place, json.dumps({"file": file, "run_folders": list(map(str, run_folders))}).encode())
