"""The note of a change under way, in the run folder: what it takes to finish or take back a change that was cut off.

In: a run folder.  Out: `Journal`, with the bytes of every file before and after. It stands on the disk before the first file of
the user is touched, and stays for undoing.

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
    """One file of the user."""

    path: str
    """Real path."""
    temporary: str
    """A name beside it: for the new bytes until they take their place, gone afterwards."""

    @property
    def kept(self) -> str:
        """A second name of the file as it was, while several files are being changed."""
        return self.temporary + "-kept"


@dataclass(frozen=True, slots=True)
class Journal:
    """A change of files; their bytes are read from the run folder when they are needed."""

    run_folder: Path
    state: str
    entries: tuple[Entry, ...]
    pid: int
    """The process that made the change."""

    def before(self, index: int) -> bytes:
        """What the file held before the change."""
        return self._bytes(index, "before")

    def after(self, index: int) -> bytes:
        """What the change made of it."""
        return self._bytes(index, "after")

    def backup(self, index: int) -> Path:
        """Where the bytes before the change are."""
        return self.run_folder / FOLDER / f"{index}.before"

    def with_state(self, state: str) -> Journal:
        """The journal in another state, on the disk too. Raises OSError."""
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
    """A new journal in state `writing`, for (path, bytes before, bytes after), all of it safely on the disk.

    Raises OSError, and leaves nothing then.
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
    """The journal of a run folder; None if no change was ever begun there. Raises AdvisorError for one that is damaged."""
    path = run_folder / FOLDER / _NAME
    try:
        content = json.loads(path.read_bytes())
        entries = tuple(Entry(entry["path"], entry["temporary"]) for entry in content["entries"])
        return Journal(run_folder, content["state"], entries, int(content["pid"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AdvisorError(
            f"{path} cannot be read ({error}); what the files held before is in {path.parent}."
        ) from None


def forget(journal: Journal) -> None:
    """Remove the journal and its bytes: of a change that never touched a file."""
    folder = journal.run_folder / FOLDER
    names = [_NAME, f".{_NAME}"]
    names += [f"{index}.{which}" for index in range(len(journal.entries)) for which in ("before", "after")]
    try:
        for name in names:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()
    except OSError:  # it was never made, or something else lies in it
        return


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file that nobody else may read yet, and wait until the disk has it. Raises OSError."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the names in a folder, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders
        return
    try:
        os.fsync(handle)
    except OSError:  # some file systems cannot
        return
    finally:
        os.close(handle)


def _save(journal: Journal) -> None:
    """Put the journal on the disk, whole or not at all."""
    folder = journal.run_folder / FOLDER
    content = {"state": journal.state, "pid": journal.pid, "entries": [asdict(entry) for entry in journal.entries]}
    part = folder / f".{_NAME}"
    write_synced(part, json.dumps(content, indent=1).encode())
    part.replace(folder / _NAME)
    sync_folder(folder)
