"""The folder of one run: where it lies, and that nobody's files are lost in it.

In: the folder that the user named, or a script's name.  Out: an empty folder for capture to write in, gone again if the run
fails and it was not there before; files written whole or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from advisor.model.errors import AdvisorError
from advisor.model.locations import reading
from advisor.model.own_files import FileKind, is_own_file
from advisor.sandbox.temporary import remove_on_death, temporary_folder

RECORDING_NAME = "recording.json"
PROFILE_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
MARKER = ".made-by-default"
"""In run folders whose place nobody named: they alone may be deleted later (`advisor.workflows.stored_runs`)."""
_FILES = (RECORDING_NAME, "host.json", "report.json", "report.html", "script.out", "script.err", "failure.json", MARKER)
_FOLDER = "plugins"
"""Where TensorBoard looks for profiles, and capture puts them: `plugins/profile/<time>/<host>.xplane.pb`."""


_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"stdout": 1, "stderr": 2}
_KINDS = {RECORDING_NAME: FileKind.RECORDING, "report.json": FileKind.REPORT, "report.html": FileKind.HTML}
"""Files of a run folder that are recognised by how they begin."""


@contextmanager
def new_run_folder(out: Path | None, name: str) -> Iterator[Path]:
    """An empty folder: `out`, or a new one below the user's state folder.

    An earlier run of ours in `out` makes room. Raises AdvisorError when `out` holds anything else or cannot be written. If
    the block raises (Ctrl-C included), what it left is removed.
    """
    folder = default_run_folder(name) if out is None else out
    try:
        was_there = folder.exists()
        if was_there:
            _check_replaceable(folder)
            _remove_run(folder)
        folder.mkdir(parents=True, exist_ok=True)
        if out is None:
            (folder / MARKER).write_text(
                f"{os.getpid()} made this folder. `advisor runs prune` may delete it; remove this file to keep it.\n",
                "utf-8",
            )
    except OSError as error:
        raise AdvisorError(
            f"Cannot write to {folder}: {error.strerror or error}; choose another folder with --out."
        ) from None
    try:
        with removed_if_killed(folder, is_new=not was_there):
            yield folder
    except BaseException:
        if was_there:
            _remove_run(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def removed_if_killed(folder: Path, is_new: bool) -> Iterator[None]:
    """A new folder in which no run has been recorded goes too if this process is killed in the block."""
    if not is_new:
        yield
        return
    with temporary_folder("run-lock") as lock:
        remove_on_death(lock, folder)
        yield


def default_run_folder(name: str) -> Path:
    """A folder that does not exist yet, below the user's state folder: `<name>-<local time>`."""
    from datetime import datetime

    runs = runs_folder()
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [runs / stem, *(runs / f"{stem}-{number}" for number in range(2, 100))]
    return next((path for path in candidates if not path.exists()), candidates[-1])


def runs_folder() -> Path:
    """Where run folders lie that nobody named."""
    from platformdirs import user_state_path

    return user_state_path("tfdata-advisor") / "runs"


def has_profile(folder: Path) -> bool:
    """Whether capture wrote a profile (a script that builds no dataset leaves none)."""
    with reading(folder):
        return any(path.name.endswith(PROFILE_SUFFIXES) for path in (folder / _FOLDER).rglob("*"))


def why_no_profile(folder: Path) -> str:
    """One sentence for a run folder of ours whose profile cannot be found although one was taken."""
    errors: list[OSError] = []
    for _ in os.walk(folder / _FOLDER, onerror=errors.append):
        pass
    unreadable = next((error for error in errors if not isinstance(error, FileNotFoundError)), None)
    if unreadable is not None:
        return (
            f"The profile of the run {folder} cannot be read: {unreadable.filename}: {unreadable.strerror}; make it readable or "
            "run the script again."
        )
    return (
        f"The profile of the run {folder} is missing: the script was profiled, but there is no .xplane.pb file below "
        f"{folder / _FOLDER}; restore it or run the script again."
    )


def run_folder_of(profile: Path) -> Path | None:
    """The run folder of ours whose profile that file is; None where there is none.

    Our capture writes into an empty folder, so of several runs below one `recording.json` the oldest is ours, and what others
    added later is not.
    """
    run = profile.parent
    if (run.parent.name, run.parent.parent.name) != ("profile", _FOLDER):
        return None
    folder = run.parent.parent.parent
    try:
        with reading(folder):
            is_ours = (folder / RECORDING_NAME).is_file()
            is_ours = is_ours and run.name == min(child.name for child in run.parent.iterdir() if child.is_dir())
    except (AdvisorError, OSError):  # what lies above a profile need not be readable
        return None
    return folder if is_ours else None


def is_saved_run(path: Path) -> bool:
    """Whether `path` is something to read (run folder, logdir, profile) and not a script to run."""
    if path.is_dir():
        try:
            return (path / RECORDING_NAME).exists() or not (path / "__main__.py").exists()
        except OSError:  # a folder that must not be searched: whoever reads it says so
            return True
    return path.name.endswith((*PROFILE_SUFFIXES, ".pb"))


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` at `path` through a temporary file beside it, so that nobody ever sees half of it.

    Raises AdvisorError when it cannot be written.
    """
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write in that takes the place of `path` when the block ends; if the block raises, `path` stays as it was.

    Raises AdvisorError when it cannot be written.
    """
    try:
        number = descriptor_of(path)
        if number is not None:
            with os.fdopen(os.dup(number), "wb") as file:
                yield file
            return
        if path.exists() and not path.is_file():  # a device, a named pipe: nothing to replace
            with path.open("wb") as file:
                yield file
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
            part.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask())
            part.replace(path)
        except BaseException:
            with suppress(OSError):
                part.unlink()
            raise
    except OSError as error:
        raise AdvisorError(f"Cannot write {path}: {error.strerror or error}.") from None


def descriptor_of(path: Path) -> int | None:
    """The open file of this process that a path such as `/dev/stdout` or `/dev/fd/3` stands for; None for any other path.

    Behind it may be a file that the shell redirects to: it is written to, and `/dev/stdout` itself is never replaced.
    """
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STANDARD.get(match[1]) if match[1] is not None else int(match[2])


def _umask() -> int:
    mask = os.umask(0o022)  # the only way to read it
    os.umask(mask)
    return mask


def holds_one_run(folder: Path, also: tuple[str, ...] = ()) -> bool:
    """Whether the folder holds one run of ours and, but for the names in `also`, nothing else."""
    names = {path.name for path in folder.iterdir()}
    profiles = [path for path in (folder / _FOLDER).rglob("*") if not path.is_dir()]
    return (
        RECORDING_NAME in names
        and names <= {*_FILES, _FOLDER, *also}
        and all(path.name.endswith(PROFILE_SUFFIXES) for path in profiles)
        and len({path.parent for path in profiles}) <= 1
        and all(is_own_file(folder / name, kind) for name, kind in _KINDS.items() if name in names)
    )


def _check_replaceable(folder: Path) -> None:
    """Raise AdvisorError unless the folder is empty or holds one run of ours and nothing else.

    A file that only has the name of one of ours is not ours. A user's own captures may lie in `plugins/profile` too, so more
    than one profile there is not ours to delete.
    """
    if not folder.is_dir():
        raise AdvisorError(f"{folder} is a file; name a folder with --out.")
    if any(folder.iterdir()) and not holds_one_run(folder):
        raise AdvisorError(
            f"{folder} holds files that are not an earlier run's; name an empty or a new folder with --out."
        )


def _remove_run(folder: Path) -> None:
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
