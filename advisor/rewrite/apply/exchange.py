"""Replaces the contents of several files: each atomically, and either all or none.

In: `Step`s (a file, its present bytes, its new bytes).  Out: replaced files, or AdvisorError and all files unchanged.

A file is never written to. Its new bytes go to a temporary file next to it, are synced to disk, and are renamed over the file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.model.atomic_file import sync_folder, write_synced
from advisor.model.errors import AdvisorError
from advisor.model.regular_files import read_regular


class PartlyChanged(AdvisorError):
    """Some files were replaced, and could not be restored after a failure."""

    def __init__(self, why: str, changed: Sequence[Path], unchanged: Sequence[Path]) -> None:
        super().__init__(why)
        self.changed, self.unchanged = tuple(changed), tuple(unchanged)


@dataclass(frozen=True, slots=True)
class Step:
    """The replacement of one file's bytes."""

    path: Path
    now: bytes
    new: bytes
    pid: int
    """The process that makes the change; it is part of the names of the temporary files."""

    @property
    def temporary(self) -> Path:
        """The new bytes, next to the file until they replace it."""
        return self.path.with_name(f".{self.path.name}.advisor-{self.pid}")

    @property
    def kept(self) -> Path:
        """Second name of the original file while several files are being replaced."""
        return self.temporary.with_name(f"{self.temporary.name}-kept")

    def clean(self) -> None:
        """Remove the temporary files next to the file."""
        for path in (self.temporary, self.kept):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def check(step: Step, since: str) -> None:
    """Check that a file has the expected contents and may be replaced.

    Args:
        step: The file.
        since: For the message, the time since which the file must not have changed.

    Raises:
        AdvisorError: The file has changed, cannot be written, or has hard links.
    """
    path = step.path
    if read(path) != step.now:
        raise AdvisorError(f"{path} has changed since {since}, so no file was changed; run advisor fix again.")
    obstacle = obstacle_to_writing(path)
    if obstacle:
        advice = "apply the diff by hand" if path.stat().st_nlink > 1 else "make it writable and try again"
        raise AdvisorError(f"{obstacle}, so no file was changed; {advice}.")


def obstacle_to_writing(path: Path) -> str:
    """Return why an existing file may not be replaced, as the beginning of a sentence; empty if it may."""
    for place, name, needs in (
        (path, str(path), os.W_OK),
        (path.parent, f"The folder {path.parent}", os.W_OK | os.X_OK),
    ):
        # Check the permission bits too: root may write anywhere, but a read-only file is meant to stay unchanged.
        if not os.access(place, needs) or not place.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            return f"{name} is read-only"
    links = path.stat().st_nlink
    return f"{path} has {links} hard links, which a change would break" if links > 1 else ""


def exchange(steps: Sequence[Step]) -> None:
    """Replace the bytes of every file; Ctrl-C is deferred while files are renamed.

    Raises:
        AdvisorError: The files cannot be written; all are unchanged.
        PartlyChanged: Some files were replaced and could not be restored.
    """
    path: Path | None = None
    try:
        for step in steps:
            path = step.path
            _stage(step)
        _swap(steps)
    except OSError as error:
        raise AdvisorError(f"{path} cannot be written: {why(error)}; no file was changed.") from None
    finally:
        for step in steps:
            step.clean()


def read(path: Path, backup: Path | None = None) -> bytes:
    """Read a user's file.

    Args:
        path: The file.
        backup: The backup of its former bytes, to be named in an error.

    Raises:
        AdvisorError: The file cannot be read.
    """
    try:
        return read_regular(path)
    except OSError as error:
        kept = f"; the old bytes are in {backup}" if backup is not None else ""
        raise AdvisorError(f"{path} cannot be read ({why(error)}), so no file was changed{kept}.") from None


def why(error: OSError) -> str:
    """Return the reason of an OSError for a message."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Defer SIGINT and SIGTERM until the end of the block, which takes milliseconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    originals = {
        number: signal.signal(number, lambda number, frame: received.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number)
        not in (None, signal.SIG_IGN)  # None: not set by Python, so it could not be restored
    }
    try:
        yield
    finally:
        for number, original in originals.items():
            signal.signal(number, original)
        if received:
            signal.raise_signal(received[0])


def _stage(step: Step) -> None:
    """Write the new bytes to a temporary file next to the file, with its owner, permissions and extended attributes."""
    write_synced(step.temporary, step.new)
    status, own = step.path.stat(), step.temporary.stat()
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        os.chown(step.temporary, status.st_uid, status.st_gid)
    shutil.copystat(step.path, step.temporary)
    os.utime(step.temporary)  # Python compiles a file again only if its time or size differs


def _swap(steps: Sequence[Step]) -> None:
    """Rename the staged files into place; if one rename fails, restore the files replaced before it."""
    done: list[Step] = []
    with undisturbed():
        try:
            if len(steps) > 1:
                for step in steps:
                    _keep(step)
            for step in steps:
                if read(step.path) != step.now:
                    raise AdvisorError(
                        f"{step.path} has just been changed by another program, so no file was changed; run advisor fix again."
                    )
                step.temporary.replace(step.path)
                done.append(step)
        except (OSError, AdvisorError) as error:
            changed = [step for step in reversed(done) if not _is_restored(step)]
            if changed:
                reason = why(error) if isinstance(error, OSError) else str(error)
                paths = [step.path for step in steps if step in changed]
                others = [step.path for step in steps if step not in changed]
                raise PartlyChanged(reason, paths, others) from None
            raise
        for folder in {step.path.parent for step in steps}:
            sync_folder(folder)


def _is_restored(step: Step) -> bool:
    """Restore the original file; whether that succeeded."""
    with contextlib.suppress(OSError):
        step.kept.replace(step.path)
        return True
    return False


def _keep(step: Step) -> None:
    """Give the file a second name, so that it can be restored without using disk space."""
    step.kept.unlink(missing_ok=True)
    try:
        step.kept.hardlink_to(step.path)
    except OSError:  # a file system without hard links
        shutil.copy2(step.path, step.kept)
