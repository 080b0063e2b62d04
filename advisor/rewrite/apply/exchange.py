"""Files that get new bytes: each in one step, all of them or none.

In: `Step`s (a file, the bytes it holds, the bytes it gets).  Out: files exchanged, or AdvisorError and all as they were.

A file is never written to. Its new bytes go to a file beside it, reach the disk, and take its name in one step.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.model.regular_files import read_regular
from advisor.rewrite.apply.journal import Entry, sync_folder, write_synced


class PartlyChanged(AdvisorError):
    """Some files got their new bytes, and could not be given the old ones back."""

    def __init__(self, why: str, changed: Sequence[Path], unchanged: Sequence[Path]) -> None:
        super().__init__(why)
        self.changed, self.unchanged = tuple(changed), tuple(unchanged)


_REMEDIES = {False: "make it writable and try again", True: "apply the diff by hand"}
"""By whether the file has hard links."""


@dataclass(frozen=True, slots=True)
class Step:
    """One file."""

    entry: Entry
    now: bytes
    new: bytes

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.entry.path)


def check(step: Step, since: str) -> None:
    """Raise AdvisorError unless the file holds what it should (`since` says since when) and may be exchanged."""
    path = step.path
    if read(path) != step.now:
        raise AdvisorError(f"{path} has changed since {since}, so no file was changed; run advisor fix again.")
    obstacle = obstacle_to_writing(path)
    if obstacle:
        raise AdvisorError(f"{obstacle}, so no file was changed; {_REMEDIES[path.stat().st_nlink > 1]}.")


def obstacle_to_writing(path: Path) -> str:
    """Why a file that is there may not be exchanged, as the beginning of a sentence; empty: it may."""
    for place, name, needs in (
        (path, str(path), os.W_OK),
        (path.parent, f"The folder {path.parent}", os.W_OK | os.X_OK),
    ):
        # The bits too: whoever is root may write everywhere, but a read-only file is meant to stay as it is.
        if not os.access(place, needs) or not place.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH):
            return f"{name} is read-only"
    links = path.stat().st_nlink
    return f"{path} has {links} hard links, which a change would part" if links > 1 else ""


def exchange(steps: Sequence[Step]) -> None:
    """Give every file its new bytes; Ctrl-C waits while names are exchanged.

    Raises AdvisorError, with all as they were; PartlyChanged where some could not be given back what they were.
    """
    path = ""
    try:
        for step in steps:
            path = step.entry.path
            _stage(step)
        _swap(steps)
    except OSError as error:
        raise AdvisorError(f"{path} cannot be written: {why(error)}; no file was changed.") from None
    finally:
        for step in steps:
            clean(step.entry)


def clean(entry: Entry) -> None:
    """Remove what stands beside the file for the time of the change."""
    for name in (entry.temporary, entry.kept):
        with contextlib.suppress(OSError):
            Path(name).unlink(missing_ok=True)


def read(path: Path, backup: Path | None = None) -> bytes:
    """The bytes of a user's file. Raises AdvisorError, which names the backup if there is one."""
    try:
        return read_regular(path)
    except OSError as error:
        kept = f"; what it held before is in {backup}" if backup is not None else ""
        raise AdvisorError(f"{path} cannot be read ({why(error)}), so no file was changed{kept}.") from None


def why(error: OSError) -> str:
    """What an OSError says, for people."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    return (error.strerror or str(error)).lower()


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ctrl-C and SIGTERM wait until the block is done: it lasts milliseconds."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    originals = {
        number: signal.signal(number, lambda number, frame: heard.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (None, signal.SIG_IGN)  # None: not Python's, and could not be put back
    }
    try:
        yield
    finally:
        for number, original in originals.items():
            signal.signal(number, original)
        if heard:
            signal.raise_signal(heard[0])


def _stage(step: Step) -> None:
    """Write the new bytes beside the file, with its permissions, owner and attributes."""
    path, temporary = step.path, Path(step.entry.temporary)
    status = path.stat()
    write_synced(temporary, step.new)
    own = temporary.stat()
    if (status.st_uid, status.st_gid) != (own.st_uid, own.st_gid):
        os.chown(temporary, status.st_uid, status.st_gid)
    _copy_attributes(path, temporary)
    temporary.chmod(stat.S_IMODE(status.st_mode))


def _copy_attributes(path: Path, temporary: Path) -> None:
    """Extended attributes (access lists among them), where the system has them."""
    if not hasattr(os, "listxattr"):
        return
    with contextlib.suppress(OSError):
        for name in os.listxattr(path):
            with contextlib.suppress(OSError):  # some belong to the system alone
                os.setxattr(temporary, name, os.getxattr(path, name))


def _swap(steps: Sequence[Step]) -> None:
    """Rename the staged files into place; if one cannot be, those before it become what they were."""
    done: list[Step] = []
    with undisturbed():
        try:
            if len(steps) > 1:
                for step in steps:
                    _keep(step)
            for step in steps:
                if read(step.path) != step.now:
                    raise AdvisorError(
                        f"{step.path} has changed a moment ago, so no file was changed; run advisor fix again."
                    )
                Path(step.entry.temporary).replace(step.path)
                done.append(step)
        except (OSError, AdvisorError) as error:
            changed = [step for step in reversed(done) if not _is_given_back(step)]
            if changed:
                reason = why(error) if isinstance(error, OSError) else str(error)
                paths = [step.path for step in steps if step in changed]
                others = [step.path for step in steps if step not in changed]
                raise PartlyChanged(reason, paths, others) from None
            raise
        for folder in {step.path.parent for step in steps}:
            sync_folder(folder)


def _is_given_back(step: Step) -> bool:
    """Whether the file is again the one that it was, or at least holds the same bytes."""
    with contextlib.suppress(OSError):
        Path(step.entry.kept).replace(step.path)
        return True
    with contextlib.suppress(AdvisorError):
        return read(step.path) == step.now
    return False


def _keep(step: Step) -> None:
    """Give the file a second name, so that it can have its first one back without a byte of disk."""
    path, kept = step.path, Path(step.entry.kept)
    kept.unlink(missing_ok=True)
    try:
        kept.hardlink_to(path)
    except OSError:  # a file system without hard links
        write_synced(kept, step.now)
        kept.chmod(stat.S_IMODE(path.stat().st_mode))
