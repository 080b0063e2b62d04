"""Writes and undoes changes of the user's files: each file completely, and either all or none.

In: a `Patch` and the run folder.  Out: the user's files with their new bytes (`write_patch`) or their old ones (`undo`).

Before the first file is changed, the run folder contains the old and new bytes of all files and a journal, so that a change
interrupted by a kill or a power loss can be undone or written again. If a file has been changed by someone else in the
meantime, no file is changed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply import backup_index
from advisor.rewrite.apply import journal as journals
from advisor.rewrite.apply.exchange import PartlyChanged, Step, check, clean, exchange, read, undisturbed, why
from advisor.rewrite.apply.journal import UNDOING, UNDONE, WRITING, WRITTEN, Journal
from advisor.rewrite.patch import Patch


def write_patch(patch: Patch, run_folder: Path, script: Path | None = None) -> tuple[Path, ...]:
    """Apply a patch to the user's files.

    Args:
        patch: The patch.
        run_folder: Where the backup goes.
        script: Path, in addition to the changed files, under which `undo` finds the backup.

    Returns:
        The paths of the changed files.

    Raises:
        AdvisorError: A file has changed since the patch was made, is read-only, has hard links or is gone; the disk is full;
            or the run folder already contains a change that is not undone. All files are unchanged, unless the message says
            otherwise.
    """
    run_folder = run_folder.resolve()
    files = [(path, before, after) for path, (before, after) in patch.files.items()]
    names = [path for path, _, _ in files] + ([script.resolve()] if script is not None else [])
    _revert_interrupted(run_folder, names)
    steps = [Step(journals.Entry(str(path), ""), before, after) for path, before, after in files]
    for step in steps:
        check(step, since="it was measured")
    try:
        journal = journals.create(run_folder, files)
    except OSError as error:
        raise AdvisorError(f"No backup can be written to {run_folder}: {why(error)}; no file was changed.") from None
    steps = [Step(entry, step.now, step.new) for entry, step in zip(journal.entries, steps, strict=True)]
    try:
        backup_index.add(names, run_folder)
    except OSError as error:
        _forget_if_untouched(journal, steps)
        raise AdvisorError(
            f"The entry that advisor fix --undo needs cannot be written to {error.filename or backup_index.folder()}: "
            f"{why(error)}; no file was changed."
        ) from None
    try:
        exchange(steps)
    except PartlyChanged as error:
        raise AdvisorError(_how_to_restore(error, journal)) from None
    except BaseException:
        with undisturbed():
            _forget_if_untouched(journal, steps)
        raise
    with contextlib.suppress(OSError):  # a journal in state `writing` can be undone as well
        journal.with_state(WRITTEN)
    return tuple(step.path for step in steps)


def undo(target: Path) -> tuple[Path, ...]:
    """Restore the files changed from a run folder, or by the latest change of a script. Also completes an interrupted undo.

    Args:
        target: The run folder or the script.

    Returns:
        The paths of the restored files.

    Raises:
        AdvisorError: A file has changed since, is gone or cannot be written, or there is nothing to undo.
    """
    target = target.resolve()
    run_folder = target if target.is_dir() else _last_change(target)
    if run_folder is None:
        raise AdvisorError(
            f"Nothing to undo: no change of {target} by advisor fix is recorded. If you have the run folder, name it instead."
        )
    journal = journals.load(run_folder)
    if journal is None:
        lost = "" if target.is_dir() else ", which contained the backup of the last change"
        raise AdvisorError(f"Nothing to undo in {run_folder}{lost}.")
    if journal.state == UNDONE:
        raise AdvisorError(f"Nothing to undo: the change in {run_folder} has been undone already.")
    return _revert(journal)


def _last_change(file: Path) -> Path | None:
    """The run folder of the file's latest change. An existing folder without a journal was recorded for a change never made."""
    folders = backup_index.folders(file)
    made = [folder for folder in folders if not folder.is_dir() or journals.load(folder) is not None]
    return made[-1] if made else None


def changes_of(run_folder: Path) -> Mapping[Path, tuple[bytes, bytes]]:
    """Return the change written from a run folder, as path -> (bytes before, bytes after); empty if there is none."""
    journal = journals.load(run_folder.resolve())
    if journal is None or journal.state == UNDONE:
        return {}
    return {Path(entry.path): (journal.before(i), journal.after(i)) for i, entry in enumerate(journal.entries)}


def _revert(journal: Journal) -> tuple[Path, ...]:
    """Undo a complete or partial change. Every file must have the old or the new bytes."""
    for entry in journal.entries:
        clean(entry)
    steps: list[Step] = []
    for index, entry in enumerate(journal.entries):
        path, before, after = Path(entry.path), journal.before(index), journal.after(index)
        now = read(path, journal.backup(index))
        if now == before:
            continue
        if now != after:
            raise AdvisorError(
                f"{path} has changed since advisor fix wrote it, so no file was changed; the old bytes are in "
                f"{journal.backup(index)}."
            )
        steps.append(Step(entry, after, before))
        check(steps[-1], since="advisor fix wrote it")
    with contextlib.suppress(OSError):  # on a full disk; the remaining steps need space for one file only
        journal = journal.with_state(UNDOING)
    try:
        exchange(steps)
    except PartlyChanged as error:
        restored, others = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
        raise AdvisorError(
            f"Only {restored} could be restored, not {others}: {error}. After repairing that, run advisor fix --undo "
            f"{journal.run_folder} again; the old bytes are also in {journal.backup(0).parent}."
        ) from None
    with contextlib.suppress(OSError):
        journal.with_state(UNDONE)
    backup_index.remove(journal.run_folder)
    return tuple(Path(entry.path) for entry in journal.entries)


def _revert_interrupted(run_folder: Path, names: list[Path]) -> None:
    """Revert an interrupted change in this run folder or in that of an earlier change of these files."""
    own = journals.load(run_folder)
    if own is not None and own.state == WRITTEN:
        raise AdvisorError(f"{run_folder} contains a change that is not undone; undo it first (advisor fix --undo).")
    earlier = [backup_index.last(name) for name in names]
    for folder in dict.fromkeys([run_folder, *(folder for folder in earlier if folder is not None)]):
        journal = journals.load(folder)
        if journal is not None and journal.state in (WRITING, UNDOING):
            if journal.pid != os.getpid() and _is_alive(journal.pid):
                raise AdvisorError(
                    f"Another advisor fix (process {journal.pid}) is changing these files; wait until it is done."
                )
            _revert(journal)


def _how_to_restore(error: PartlyChanged, journal: Journal) -> str:
    changed, others = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
    unchanged = f"; not changed: {others}" if others else ""
    return (
        f"The change could be neither completed nor reverted: {error}. Changed: {changed}{unchanged}. To restore the changed "
        f"files, run advisor fix --undo {journal.run_folder}; the old bytes are also in {journal.backup(0).parent}."
    )


def _forget_if_untouched(journal: Journal, steps: list[Step]) -> None:
    """After a failure or Ctrl-C, remove the journal if no file was changed."""
    with contextlib.suppress(AdvisorError):
        if all(read(step.path) == step.now for step in steps):
            journals.forget(journal)
            backup_index.remove(journal.run_folder)


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # on Windows, os.kill would end the process
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and belongs to another user
        return True
    return True
