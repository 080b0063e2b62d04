"""Lists the run folders in the default location, and deletes the oldest beyond a limit.

In: the user's state folder.  Out: `StoredRun`s; deleted folders. A folder is deleted only if it was created there by default: it
holds the marker (`run_folder.MARKER`), a recording, and no other files. Folders named by `--out`, folders whose change of source
files can still be undone, and folders created by a process that is still running are kept.
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

import psutil

from advisor.model.errors import AdvisorError
from advisor.model.run_folder import MARKER, RECORDING_NAME, holds_one_run, runs_folder
from advisor.rewrite.apply import journal as journals

KEEP_RUNS = 20
KEEP_BYTES = 2 << 30
"""Default limits, overridden by the settings `keep-runs` and `keep-runs-gib`."""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """One run folder in the default location."""

    path: Path
    target: str
    """The script or module; empty if the recording cannot be read."""
    size_bytes: int
    made_s: float
    """Time of creation, Unix s."""
    kept_because: str = ""
    """Why the folder is never deleted; empty if it may be deleted."""


def stored_runs() -> list[StoredRun]:
    """Return all run folders in the default location, newest first."""
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
    """Return the runs beyond a limit that may be deleted.

    The newest run is never returned. Runs that must be kept count towards the limits.

    Args:
        runs: All runs, newest first.
        keep: Maximum number of runs; None for no limit.
        keep_bytes: Maximum total size; None for no limit.
        older_than_s: Maximum age in seconds; None for no limit.
        now_s: The current Unix time; None for the clock's.
    """
    now_s = time.time() if now_s is None else now_s
    beyond = []
    size = 0
    for number, run in enumerate(runs):
        size += run.size_bytes
        is_beyond = (
            (keep is not None and number >= keep)
            or (keep_bytes is not None and size > keep_bytes)
            or (older_than_s is not None and now_s - run.made_s > older_than_s)
        )
        if is_beyond and number and not run.kept_because:
            beyond.append(run)
    return beyond


def delete(runs: Sequence[StoredRun]) -> list[StoredRun]:
    """Delete the folders of `runs` that may still be deleted, and return those runs."""
    deleted = []
    for run in runs:
        if _why_kept(run.path):
            continue
        renamed = run.path.with_name(f".{run.path.name}.deleted-{os.getpid()}")
        with suppress(OSError):
            run.path.rename(renamed)  # so that no other process sees a partially deleted run
            shutil.rmtree(renamed, ignore_errors=True)
            deleted.append(run)
    return deleted


def prune(keep: int | None = KEEP_RUNS, keep_bytes: float | None = KEEP_BYTES) -> list[StoredRun]:
    """Delete the oldest runs beyond the limits, after a new run; with `keep` None, delete nothing."""
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
    """Why a folder must not be deleted; empty if it may be."""
    if path.parent != runs_folder() or path.is_symlink():
        return "not in the default location"
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
    except (AdvisorError, OSError, ValueError, OverflowError):
        return "cannot be read"
    return ""


def _is_alive(marker: str) -> bool:
    """Whether the process that created the folder is another one that still runs."""
    words = marker.split()
    if not words or not words[0].isdigit():
        return False
    return int(words[0]) != os.getpid() and psutil.pid_exists(int(words[0]))
