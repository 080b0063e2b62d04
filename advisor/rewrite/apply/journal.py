"""The journal of a change in the run folder, with which an interrupted change can be completed or reverted.

In: a run folder.  Out: `Journal`, with the bytes of every file before and after. It is on disk before the first of the user's
files is changed, and is kept for undoing.

    source/journal.json      state, and the path of each file
    source/0.before 0.after  the bytes
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from advisor.model.errors import AdvisorError

FOLDER = "source"
_NAME = "journal.json"

WRITING, WRITTEN, UNDOING, UNDONE = "writing", "written", "undoing", "undone"


@dataclass(frozen=True, slots=True)
class Entry:
    """One of the user's files."""

    path: str
    """Real path."""
    temporary: str
    """Path of the temporary file with the new bytes, next to the file; removed afterwards."""

    @property
    def kept(self) -> str:
        """Second name of the original file while several files are being replaced."""
        return self.temporary + "-kept"


@dataclass(frozen=True, slots=True)
class Journal:
    """A change of files, whose bytes are read from the run folder on demand."""

    run_folder: Path
    state: str
    entries: tuple[Entry, ...]
    pid: int
    """The process that made the change."""

    def before(self, index: int) -> bytes:
        """Read the file's bytes before the change."""
        return self._bytes(index, "before")

    def after(self, index: int) -> bytes:
        """Read the file's bytes after the change."""
        return self._bytes(index, "after")

    def backup(self, index: int) -> Path:
        """Path of the backup of the file's bytes before the change."""
        return self.run_folder / FOLDER / f"{index}.before"

    def with_state(self, state: str) -> Journal:
        """Return the journal in another state, saved to disk.

        Raises:
            OSError: It cannot be written.
        """
        changed = replace(self, state=state)
        _save(changed)
        return changed

    def _bytes(self, index: int, which: str) -> bytes:
        path = self.run_folder / FOLDER / f"{index}.{which}"
        try:
            return path.read_bytes()
        except OSError as error:
            raise AdvisorError(f"The backup {path} cannot be read: {error.strerror or error}.") from None


def create(run_folder: Path, files: Sequence[tuple[Path, bytes, bytes]]) -> Journal:
    """Create a journal in state `writing`, synced to disk.

    Args:
        run_folder: The run folder.
        files: (path, bytes before, bytes after) of every file.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    folder = run_folder / FOLDER
    pid = os.getpid()
    entries = tuple(Entry(str(path), str(path.with_name(f".{path.name}.advisor-{pid}"))) for path, _, _ in files)
    journal = Journal(run_folder, WRITING, entries, pid)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, (_, before, after) in enumerate(files):
            write_synced(folder / f"{index}.before", before)
            write_synced(folder / f"{index}.after", after)
        _save(journal)
    except BaseException:
        forget(journal)
        raise
    return journal


def load(run_folder: Path) -> Journal | None:
    """Load the journal of a run folder; None if there is none.

    Raises:
        AdvisorError: The journal is damaged.
    """
    path = run_folder / FOLDER / _NAME
    try:
        content = json.loads(path.read_bytes())
        entries = tuple(Entry(entry["path"], entry["temporary"]) for entry in content["entries"])
        return Journal(run_folder, content["state"], entries, int(content["pid"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdvisorError(
            f"{path} cannot be read ({error}); the old bytes of the files are in {path.parent}."
        ) from None


def forget(journal: Journal) -> None:
    """Remove the journal and its bytes after a change that did not replace any file."""
    folder = journal.run_folder / FOLDER
    names = [_NAME, f".{_NAME}"]
    names += [f"{index}.{which}" for index in range(len(journal.entries)) for which in ("before", "after")]
    try:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:  # it was never created, or contains other files
        return


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file, readable only by the user, and sync it to disk.

    Raises:
        OSError: It cannot be written.
    """
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk, if the system supports it."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:  # not supported by some file systems
        return
    finally:
        os.close(handle)


def _save(journal: Journal) -> None:
    """Write the journal to disk atomically."""
    folder = journal.run_folder / FOLDER
    content = {"state": journal.state, "pid": journal.pid, "entries": [asdict(entry) for entry in journal.entries]}
    part = folder / f".{_NAME}"
    write_synced(part, json.dumps(content, indent=1).encode())
    part.replace(folder / _NAME)
    sync_folder(folder)
