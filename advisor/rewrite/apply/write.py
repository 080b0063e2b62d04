"""Writes changes of the user's files: each file completely, and either all or none. `undo` beside it restores them.

In: a `Patch` and the run folder.  Out: the user's files with their new bytes.

Before the first file is changed, the run folder contains the old and new bytes of all files and a journal, so that a change
interrupted by a kill or a power loss can be undone or written again. If a file has been changed by someone else in the
meantime, no file is changed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import psutil

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply import backup_index
from advisor.rewrite.apply import journal as journals
from advisor.rewrite.apply.exchange import PartlyChanged, Step, check, exchange, read, undisturbed, why
from advisor.rewrite.apply.journal import UNDOING, WRITING, WRITTEN, WriteJournal
from advisor.rewrite.apply.undo import revert
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
    steps = [Step(path, before, after, os.getpid()) for path, before, after in files]
    for step in steps:
        check(step, since="it was measured")
    try:
        journal = journals.create(run_folder, files)
    except OSError as error:
        raise AdvisorError(f"No backup can be written to {run_folder}: {why(error)}; no file was changed.") from None
    try:
        backup_index.add(names, run_folder)
    except OSError as error:
        _forget(journal)
        raise AdvisorError(
            f"The entry that advisor fix --undo needs cannot be written to {error.filename or backup_index.folder()}: "
            f"{why(error)}; no file was changed."
        ) from None
    try:
        exchange(steps)
    except PartlyChanged as error:
        raise AdvisorError(_how_to_restore(error, journal)) from None
    except AdvisorError:
        _forget(journal)
        raise
    except BaseException:  # Ctrl-C, before the files were replaced or after it
        with contextlib.suppress(AdvisorError):
            if all(read(step.path) == step.now for step in steps):
                _forget(journal)
        raise
    with contextlib.suppress(OSError):  # a journal in state `writing` can be undone as well
        journal.with_state(WRITTEN)
    return tuple(step.path for step in steps)


def _revert_interrupted(run_folder: Path, names: list[Path]) -> None:
    """Revert an interrupted change in this run folder or in that of an earlier change of these files."""
    own = journals.load(run_folder)
    if own is not None and own.state == WRITTEN:
        raise AdvisorError(f"{run_folder} contains a change that is not undone; undo it first (advisor fix --undo).")
    earlier = [folder for name in names for folder in backup_index.folders(name)[-1:]]
    for folder in dict.fromkeys([run_folder, *earlier]):
        journal = journals.load(folder)
        if journal is not None and journal.state in (WRITING, UNDOING):
            if journal.pid != os.getpid() and psutil.pid_exists(journal.pid):
                raise AdvisorError(
                    f"Another advisor fix (process {journal.pid}) is changing these files; wait until it is done."
                )
            revert(journal)


def _how_to_restore(error: PartlyChanged, journal: WriteJournal) -> str:
    changed, others = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
    unchanged = f"; not changed: {others}" if others else ""
    return (
        f"The change could be neither completed nor reverted: {error}. Changed: {changed}{unchanged}. To restore the changed "
        f"files, {journal.how_to_undo()}"
    )


def _forget(journal: WriteJournal) -> None:
    """Remove the traces of a change that was not made."""
    with undisturbed():
        journals.forget(journal)
        backup_index.remove(journal.run_folder)
