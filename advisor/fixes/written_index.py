"""Which run folder holds the backup of a file: how `--undo SCRIPT` finds its way back.

In: paths of changed files.  Out: a small file per path below the user's state folder, which lists run folders, the last change
last. Losing it costs nothing but the need to name the run folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from advisor.errors import AdvisorError
from advisor.run_folder import write_whole


def add(files: Sequence[Path], run_folder: Path) -> None:
    """Remember that the run folder holds what these files were before. A state folder that cannot be written is no failure."""
    for file in dict.fromkeys(files):
        folders = [folder for folder in _read(file) if folder != str(run_folder)]
        _write(file, [*folders, str(run_folder)])


def last(file: Path) -> Path | None:
    """The run folder of the file's last change that still stands; None: there is none."""
    folders = _read(file)
    return Path(folders[-1]) if folders else None


def remove(run_folder: Path) -> None:
    """Forget a run folder whose change has been undone."""
    for index in _index().glob("*.json"):
        try:
            content = json.loads(index.read_bytes())
            folders = [folder for folder in content["run_folders"] if folder != str(run_folder)]
            if folders == content["run_folders"]:
                continue
            _write(Path(content["file"]), folders)
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
    place = _place(file)
    with contextlib.suppress(OSError, AdvisorError):
        if not run_folders:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps({"file": str(file), "run_folders": run_folders}).encode())
