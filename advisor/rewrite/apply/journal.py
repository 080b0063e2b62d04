"""The journal of a change in the run folder, with which an interrupted change can be completed or reverted.

In: a run folder.  Out: `WriteJournal`, with the bytes of every file before and after. It is on disk before the first of the
user's files is changed, and is kept for undoing.

    source/journal.json      state, and the path of each file
    source/0.before 0.after  the bytes
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.model.atomic_file import replace_synced, write_synced
from advisor.model.codec import decode_message, encode_message
from advisor.model.errors import AdvisorError

FOLDER = "source"
_NAME = "journal.json"

WRITING, WRITTEN, UNDOING, UNDONE = "writing", "written", "undoing", "undone"


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path


@dataclass(frozen=True, slots=True)
class _Content:
    """What journal.json holds."""

    state: str
    pid: int
    entries: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True)
class WriteJournal:
    """A change of files, whose bytes are read from the run folder on demand."""

    run_folder: Path
    state: str
    paths: tuple[Path, ...]
    """The user's files."""
    pid: int
    """The process that made the change."""

    def before(self, index: int) -> bytes:
        """Read the file's bytes before the change."""
        return self._bytes(self.backup(index))

    def after(self, index: int) -> bytes:
        """Read the file's bytes after the change."""
        return self._bytes(self.backup(index).with_suffix(".after"))

    def backup(self, index: int) -> Path:
        """Path of the backup of the file's bytes before the change."""
        return self.run_folder / FOLDER / f"{index}.before"

    def with_state(self, state: str) -> WriteJournal:
        """Return the journal in another state, saved to disk.

        Raises:
            OSError: It cannot be written.
        """
        content = _Content(state, self.pid, tuple(map(_Entry, self.paths)))
        replace_synced(self.run_folder / FOLDER / _NAME, encode_message(content).encode())
        return replace(self, state=state)

    def how_to_undo(self, again: str = "") -> str:
        """Return what restores the files, as the end of a sentence.

        Args:
            again: Words after the command.
        """
        return f"run advisor fix --undo {self.run_folder}{again}; the old bytes are also in {self.run_folder / FOLDER}."

    @staticmethod
    def _bytes(path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            raise AdvisorError(f"The backup {path} cannot be read: {error.strerror or error}.") from None


def create(run_folder: Path, files: Sequence[tuple[Path, bytes, bytes]]) -> WriteJournal:
    """Create a journal in state `writing`, synced to disk.

    Args:
        run_folder: The run folder.
        files: (path, bytes before, bytes after) of every file.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    journal = WriteJournal(run_folder, WRITING, tuple(path for path, _, _ in files), os.getpid())
    try:
        (run_folder / FOLDER).mkdir(parents=True, exist_ok=True)
        for index, (_, before, after) in enumerate(files):
            write_synced(journal.backup(index), before)
            write_synced(journal.backup(index).with_suffix(".after"), after)
        return journal.with_state(WRITING)
    except BaseException:
        forget(journal)
        raise


def load(run_folder: Path) -> WriteJournal | None:
    """Load the journal of a run folder; None if there is none.

    Raises:
        AdvisorError: The journal is damaged.
    """
    path = run_folder / FOLDER / _NAME
    try:
        content = decode_message(path.read_bytes(), _Content)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise AdvisorError(
            f"{path} cannot be read ({error}); the old bytes of the files are in {path.parent}."
        ) from None
    return WriteJournal(run_folder, content.state, tuple(entry.path for entry in content.entries), content.pid)


def forget(journal: WriteJournal) -> None:
    """Remove the journal and its bytes after a change that did not replace any file."""
    folder = journal.run_folder / FOLDER
    with suppress(OSError):  # it was never created, or contains other files
        (folder / _NAME).unlink(missing_ok=True)
        for index in range(len(journal.paths)):
            journal.backup(index).unlink(missing_ok=True)
            journal.backup(index).with_suffix(".after").unlink(missing_ok=True)
        folder.rmdir()
