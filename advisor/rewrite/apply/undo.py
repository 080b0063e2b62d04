"""Undoes a change of the user's files: each file is restored completely, and either all or none (`advisor fix --undo`).

In: the run folder of the change, or a changed file.  Out: the user's files with their old bytes. If a file has been changed by
someone else in the meantime, no file is changed.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.rewrite.apply import backup_index
from advisor.rewrite.apply import journal as journals
from advisor.rewrite.apply.exchange import PartlyChanged, Step, check, exchange, read
from advisor.rewrite.apply.journal import UNDOING, UNDONE, WriteJournal


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
    return revert(journal)


def revert(journal: WriteJournal) -> tuple[Path, ...]:
    """Undo a complete or partial change.

    Args:
        journal: The journal of the change.

    Returns:
        The paths of its files.

    Raises:
        AdvisorError: A file has neither the old nor the new bytes, or cannot be written.
    """
    whole = [Step(p, journal.after(i), journal.before(i), journal.pid) for i, p in enumerate(journal.paths)]
    for step in whole:
        step.clean()
    steps: list[Step] = []
    for index, step in enumerate(whole):
        now = read(step.path, journal.backup(index))
        if now == step.new:
            continue
        if now != step.now:
            raise AdvisorError(
                f"{step.path} has changed since advisor fix wrote it, so no file was changed; the old bytes are in "
                f"{journal.backup(index)}."
            )
        check(step, since="advisor fix wrote it")
        steps.append(step)
    with contextlib.suppress(OSError):  # on a full disk; the remaining steps need space for one file only
        journal = journal.with_state(UNDOING)
    try:
        exchange(steps)
    except PartlyChanged as error:
        restored, others = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
        raise AdvisorError(
            f"Only {restored} could be restored, not {others}: {error}. After repairing that, {journal.how_to_undo(' again')}"
        ) from None
    with contextlib.suppress(OSError):
        journal.with_state(UNDONE)
    backup_index.remove(journal.run_folder)
    return journal.paths


def _last_change(file: Path) -> Path | None:
    """The run folder of the file's latest change. An existing folder without a journal was recorded for a change never made."""
    folders = backup_index.folders(file)
    made = [folder for folder in folders if not folder.is_dir() or journals.load(folder) is not None]
    return made[-1] if made else None
