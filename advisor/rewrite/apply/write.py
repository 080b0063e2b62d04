"""The user's files changed, and changed back: each whole or not at all, all of them or none.

In: a `Patch` and the run folder.  Out: files of the user with new bytes (`write_patch`), or with their old ones (`undo`).

Before the first file is touched the run folder holds the old and the new bytes of all files and a journal, so that what a kill
or a power cut leaves between two files can be undone or written again. Whoever changed a file meanwhile keeps the change:
nothing is touched then.
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
    """Change the user's files as the patch says; returns their paths.

    `run_folder` gets the backup; `script` is one more name (beside the changed files) under which `undo` finds it. Raises
    AdvisorError, with all files as they were, if one has changed since the patch was made, is read-only, has hard links or is
    gone, if the disk is full, or if the run folder already holds a change that stands written.
    """
    run_folder = run_folder.resolve()
    files = [(path, before, after) for path, (before, after) in patch.files.items()]
    names = [path for path, _, _ in files] + ([script.resolve()] if script is not None else [])
    _finish_what_was_cut_off(run_folder, names)
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
            f"The note that advisor fix --undo needs cannot be written to {error.filename or backup_index.folder()}: "
            f"{why(error)}; no file was changed."
        ) from None
    try:
        exchange(steps)
    except PartlyChanged as error:
        raise AdvisorError(_how_to_get_back(error, journal)) from None
    except BaseException:
        with undisturbed():
            _forget_if_untouched(journal, steps)
        raise
    with contextlib.suppress(OSError):  # `writing` undoes as well
        journal.with_state(WRITTEN)
    return tuple(step.path for step in steps)


def undo(target: Path) -> tuple[Path, ...]:
    """Give the files of a run folder, or those of the last change of a script, the bytes they had before; returns their paths.

    Takes back what is there of a change or an undoing that was cut off, too. Raises AdvisorError, with all files as they are,
    if one has changed since, is gone or cannot be written, or if there is nothing to undo.
    """
    target = target.resolve()
    run_folder = target if target.is_dir() else _last_change(target)
    if run_folder is None:
        raise AdvisorError(
            f"Nothing to undo: no change of {target} by advisor fix is known; name the run folder if you have it."
        )
    journal = journals.load(run_folder)
    if journal is None:
        lost = "" if target.is_dir() else ", where the backup of the last change was"
        raise AdvisorError(f"Nothing to undo in {run_folder}{lost}.")
    if journal.state == UNDONE:
        raise AdvisorError(f"Nothing to undo: the change in {run_folder} has been undone already.")
    return _take_back(journal)


def _last_change(file: Path) -> Path | None:
    """The run folder of the file's last change. One that is there but holds no change was noted for one that was never made."""
    folders = backup_index.folders(file)
    made = [folder for folder in folders if not folder.is_dir() or journals.load(folder) is not None]
    return made[-1] if made else None


def changes_of(run_folder: Path) -> Mapping[Path, tuple[bytes, bytes]]:
    """What stands written from a run folder: path -> (bytes before, bytes after); empty if nothing does."""
    journal = journals.load(run_folder.resolve())
    if journal is None or journal.state == UNDONE:
        return {}
    return {Path(entry.path): (journal.before(i), journal.after(i)) for i, entry in enumerate(journal.entries)}


def _take_back(journal: Journal) -> tuple[Path, ...]:
    """Undo whatever of a change has been made. Every file must hold the old or the new bytes."""
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
                f"{path} has changed since advisor fix wrote it, so no file was changed; what it held before is in "
                f"{journal.backup(index)}."
            )
        steps.append(Step(entry, after, before))
        check(steps[-1], since="advisor fix wrote it")
    with contextlib.suppress(OSError):  # a full disk: the rest of the way back needs room for one file only
        journal = journal.with_state(UNDOING)
    try:
        exchange(steps)
    except PartlyChanged as error:
        back, still = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
        raise AdvisorError(
            f"Only {back} got the old bytes back, {still} did not: {error}. Once that is repaired, advisor fix --undo "
            f"{journal.run_folder} does the rest; the old bytes are in {journal.backup(0).parent} too."
        ) from None
    with contextlib.suppress(OSError):
        journal.with_state(UNDONE)
    backup_index.remove(journal.run_folder)
    return tuple(Path(entry.path) for entry in journal.entries)


def _finish_what_was_cut_off(run_folder: Path, names: list[Path]) -> None:
    """Take back a change that a kill left half-made, here or in the run folder of an earlier change of these files."""
    own = journals.load(run_folder)
    if own is not None and own.state == WRITTEN:
        raise AdvisorError(f"{run_folder} holds a change that stands written; undo it first (advisor fix --undo).")
    earlier = [backup_index.last(name) for name in names]
    for folder in dict.fromkeys([run_folder, *(each for each in earlier if each is not None)]):
        journal = journals.load(folder)
        if journal is not None and journal.state in (WRITING, UNDOING):
            if journal.pid != os.getpid() and _is_alive(journal.pid):
                raise AdvisorError(
                    f"Another advisor fix (process {journal.pid}) is changing these files; let it finish first."
                )
            _take_back(journal)


def _how_to_get_back(error: PartlyChanged, journal: Journal) -> str:
    changed, others = ", ".join(map(str, error.changed)), ", ".join(map(str, error.unchanged))
    unchanged = f"; not changed: {others}" if others else ""
    return (
        f"The change could neither be finished nor taken back: {error}. Changed: {changed}{unchanged}. advisor fix --undo "
        f"{journal.run_folder} gives the changed files their old bytes back, which are in {journal.backup(0).parent} too."
    )


def _forget_if_untouched(journal: Journal, steps: list[Step]) -> None:
    """After a failure or Ctrl-C: no journal for a change of which nothing was made."""
    with contextlib.suppress(AdvisorError):
        if all(read(step.path) == step.now for step in steps):
            journals.forget(journal)
            backup_index.remove(journal.run_folder)


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # there `kill` would end it
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there and not ours
        return True
    return True
