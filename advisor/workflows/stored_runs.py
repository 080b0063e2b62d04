"""The run folders that commands leave in their default place: listed, and the oldest deleted beyond a limit.

In: the user's state folder.  Out: `StoredRun`s; folders deleted. Only a folder that was made there by default is ever deleted: it
holds our marker (`run_folder.MARKER`), a recording, and nothing that is not ours. One that was named by `--out`, one whose change
of files can still be undone, and one that a living process made are kept.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.model.run_folder import MARKER, RECORDING_NAME, holds_one_run, runs_folder
from advisor.rewrite.apply import journal as journals

KEEP_RUNS = 20
KEEP_BYTES = 2 << 30
"""What is kept unless the settings say otherwise (`keep-runs`, `keep-runs-gib`)."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run folder in the default place."""

    path: Path
    target: str
    """What was run; empty if the recording cannot be read."""
    size_bytes: int
    made_s: float
    """When it was made, Unix time, s."""
    kept_because: str = ""
    """Why it is never deleted; empty: it may be."""


def stored_runs() -> list[StoredRun]:
    """All run folders in the default place, the newest first."""
    folder = runs_folder()
    try:
        paths = [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except OSError:
        return []
    runs = [_run_at(path) for path in paths if (path / RECORDING_NAME).is_file()]
    return sorted(runs, key=lambda run: run.made_s, reverse=True)


def excess(
    runs: Sequence[StoredRun],
    keep: int | None = None,
    keep_bytes: float | None = None,
    older_than_s: float | None = None,
    now_s: float | None = None,
) -> list[StoredRun]:
    """Those of `runs` (the newest first) that a limit does not allow and that may be deleted. The newest is always kept.

    Runs that are kept in any case count towards the limits. `older_than_s`: seconds since a run was made.
    """
    now_s = time.time() if now_s is None else now_s
    found = []
    size = 0
    for number, run in enumerate(runs):
        size += run.size_bytes
        is_beyond = (
            (keep is not None and number >= keep)
            or (keep_bytes is not None and size > keep_bytes)
            or (older_than_s is not None and now_s - run.made_s > older_than_s)
        )
        if is_beyond and number and not run.kept_because:
            found.append(run)
    return found


def delete(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Delete their folders; returns those that are gone. One that has become something else meanwhile is kept."""
    gone = []
    for run in runs:
        if _why_kept(run.path):
            continue
        doomed = run.path.with_name(f".{run.path.name}.deleted-{os.getpid()}")
        with suppress(OSError):
            run.path.rename(doomed)  # so that nobody finds half a run
            shutil.rmtree(doomed, ignore_errors=True)
            gone.append(run)
    return gone


def prune(keep: int | None = KEEP_RUNS, keep_bytes: float | None = KEEP_BYTES) -> list[StoredRun]:
    """What a new run brings about: the oldest runs beyond the limits are deleted. `keep` None: none ever is."""
    return [] if keep is None else delete(excess(stored_runs(), keep, keep_bytes))


def _run_at(path: Path) -> StoredRun:
    target, size = "", 0
    with suppress(OSError, ValueError, TypeError, KeyError):
        target = str(json.loads((path / RECORDING_NAME).read_bytes())["target"])
    for folder, _, names in os.walk(path):
        for name in names:
            with suppress(OSError):
                size += (Path(folder) / name).lstat().st_size
    made_s = 0.0
    with suppress(OSError):
        made_s = (path / RECORDING_NAME).stat().st_mtime
    return StoredRun(path, target, size, made_s, _why_kept(path))


def _why_kept(path: Path) -> str:
    """Why a folder must not be deleted; empty: it may."""
    if path.parent != runs_folder() or path.is_symlink():
        return "not in the default place"
    if not (path / MARKER).is_file():
        return "not marked"
    try:
        journal = journals.load(path)
        if journal is not None and journal.state != journals.UNDONE:
            return "needed by fix --undo"
        if not (path / RECORDING_NAME).is_file() or not holds_one_run(path, also=(journals.FOLDER,)):
            return "holds other files"
        if _is_alive((path / MARKER).read_text("utf-8")):
            return "in use"
    except (AdvisorError, OSError, ValueError):
        return "cannot be read"
    return ""


def _is_alive(marker: str) -> bool:
    """Whether the process that made the folder still runs."""
    words = marker.split()
    if not words or not words[0].isdigit() or os.name == "nt":
        return False
    try:
        os.kill(int(words[0]), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is there and not ours
        return True
    return int(words[0]) != os.getpid()
