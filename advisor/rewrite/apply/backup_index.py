"""Maps changed files to the run folders with their backups, for `--undo SCRIPT`.

In: paths of changed files.  Out: a small file per path below the user's state folder that lists run folders, the latest change
last. If it is lost, the run folder must be named instead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from advisor.rewrite.apply.journal import write_synced


def add(files: Sequence[Path], run_folder: Path) -> None:
    """Record that the run folder holds the backup of these files.

    Raises:
        OSError: The user's state folder cannot be written; nothing is recorded.
    """
    try:
        for file in dict.fromkeys(files):
            others = [other for other in _read(file) if other != str(run_folder)]
            _write(file, [*others, str(run_folder)])
    except OSError:
        remove(run_folder)
        raise


def folder() -> Path:
    """Return the folder of the index."""
    return _index()


def folders(file: Path) -> list[Path]:
    """Return the run folders of the file's changes that are not undone, the latest last."""
    return [Path(run_folder) for run_folder in _read(file)]


def last(file: Path) -> Path | None:
    """Return the run folder of the file's latest change that is not undone, if any."""
    known = folders(file)
    return known[-1] if known else None


def remove(run_folder: Path) -> None:
    """Remove a run folder whose change has been undone."""
    for index in _index().glob("*.json"):
        try:
            content = json.loads(index.read_bytes())
            others = [other for other in content["run_folders"] if other != str(run_folder)]
            if others == content["run_folders"]:
                continue
            _write(Path(content["file"]), others)
        except (OSError, ValueError, KeyError, TypeError):
            continue


def _index() -> Path:
    from platformdirs import user_state_path

    return user_state_path("tfdata-advisor") / "written"


def _place(file: Path) -> Path:
    return _index() / f"{hashlib.sha256(str(file).encode()).hexdigest()[:24]}.json"


def _read(file: Path) -> list[str]:
    try:
        content = json.loads(_place(file).read_bytes())
        return [str(folder) for folder in content["run_folders"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _write(file: Path, run_folders: list[str]) -> None:
    """Write the entry of a file atomically.

    Raises:
        OSError: It cannot be written.
    """
    place = _place(file)
    if not run_folders:
        place.unlink(missing_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f".{place.name}")
    try:
        write_synced(part, json.dumps({"file": str(file), "run_folders": run_folders}).encode())
        part.replace(place)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
