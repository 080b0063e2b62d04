"""Manages run folders: their location, protection of other files in them, and atomic writes.

In: the folder that the user named, or a script's name.  Out: an empty folder for capture, removed again if the run fails and the
folder is new; files that are written completely or not at all.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from advisor.model.atomic_file import replacing
from advisor.model.errors import AdvisorError
from advisor.model.locations import reading
from advisor.model.own_files import FileKind, is_own_file
from advisor.sandbox.temporary import remove_on_death, temporary_folder

RECORDING_NAME = "recording.json"
PROFILE_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")
MARKER = ".made-by-default"
"""Marks run folders in the default location; only these may be deleted later (`advisor.workflows.stored_runs`)."""
_FILES = (RECORDING_NAME, "host.json", "report.json", "report.html", "script.out", "script.err", "failure.json", MARKER)
_FOLDER = "plugins"
"""Where TensorBoard expects profiles and capture writes them: `plugins/profile/<time>/<host>.xplane.pb`."""


_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_STANDARD = {"stdout": 1, "stderr": 2}
_KINDS = {RECORDING_NAME: FileKind.RECORDING, "report.json": FileKind.REPORT, "report.html": FileKind.HTML}
"""Files of a run folder that are recognised by their first bytes."""


@contextmanager
def new_run_folder(out: Path | None, name: str) -> Iterator[Path]:
    """Provide an empty run folder and remove it again if the block raises (including Ctrl-C).

    Args:
        out: The folder; an earlier run in it is deleted. None creates a new folder in the user's state folder.
        name: The name of the script, for the name of a new folder.

    Raises:
        AdvisorError: `out` contains files other than an earlier run, or cannot be written.
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
    """Also remove a new folder if this process is killed in the block before a run was recorded."""
    if not is_new:
        yield
        return
    with temporary_folder("run-lock") as lock:
        remove_on_death(lock, folder)
        yield


def default_run_folder(name: str) -> Path:
    """Return a path in the user's state folder that does not exist yet: `<name>-<local time>`."""
    from datetime import datetime

    runs = runs_folder()
    stem = f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    candidates = [runs / stem, *(runs / f"{stem}-{number}" for number in range(2, 100))]
    return next((path for path in candidates if not path.exists()), candidates[-1])


def runs_folder() -> Path:
    """Return the default location of run folders."""
    from platformdirs import user_state_path

    return user_state_path("tfdata-advisor") / "runs"


def has_profile(folder: Path) -> bool:
    """Return whether the run folder contains a profile (there is none if the script creates no dataset)."""
    with reading(folder):
        return any(path.name.endswith(PROFILE_SUFFIXES) for path in (folder / _FOLDER).rglob("*"))


def why_no_profile(folder: Path) -> str:
    """Explain, in one sentence, why the profile of a profiled run cannot be found."""
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
    """Return the run folder that a profile file belongs to; None if it belongs to none.

    Capture writes into an empty folder, so if there are several profiled runs below one `recording.json`, only the oldest belongs
    to it; the others were added later.
    """
    run = profile.parent
    if (run.parent.name, run.parent.parent.name) != ("profile", _FOLDER):
        return None
    folder = run.parent.parent.parent
    try:
        with reading(folder):
            is_ours = (folder / RECORDING_NAME).is_file()
            is_ours = is_ours and run.name == min(child.name for child in run.parent.iterdir() if child.is_dir())
    except (AdvisorError, OSError):  # the folders above a profile need not be readable
        return None
    return folder if is_ours else None


def is_saved_run(path: Path) -> bool:
    """Return whether `path` is a saved run (run folder, logdir, profile) instead of a script."""
    if path.is_dir():
        try:
            return (path / RECORDING_NAME).exists() or not (path / "__main__.py").exists()
        except OSError:  # no permission to search the folder; reading it reports the error
            return True
    return path.name.endswith((*PROFILE_SUFFIXES, ".pb"))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically, through a temporary file in the same folder.

    Raises:
        AdvisorError: The file cannot be written.
    """
    with whole_file(path) as file:
        file.write(data)


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` when the block ends. If the block raises, `path` is unchanged.

    Raises:
        AdvisorError: The file cannot be written.
    """
    try:
        number = descriptor_of(path)
        if number is not None:
            with os.fdopen(os.dup(number), "wb") as file:
                yield file
            return
        if path.exists() and not path.is_file():  # a device or a named pipe cannot be replaced
            with path.open("wb") as file:
                yield file
            return
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise AdvisorError(f"Cannot write {path}: {error.strerror or error}.") from None


def descriptor_of(path: Path) -> int | None:
    """Return the file descriptor that a path such as `/dev/stdout` or `/dev/fd/3` refers to; None for any other path.

    The descriptor may refer to a file that the shell redirects to. Such a file is written to; `/dev/stdout` is never replaced.
    """
    match = _DESCRIPTOR.fullmatch(str(path))
    if match is None:
        return None
    return _STANDARD.get(match[1]) if match[1] is not None else int(match[2])


def holds_one_run(folder: Path, also: tuple[str, ...] = ()) -> bool:
    """Return whether the folder contains one run and nothing else.

    Args:
        folder: The folder.
        also: Names of further files that it may contain.
    """
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
    """Raise AdvisorError unless the folder is empty or contains one run and nothing else.

    A matching file name alone is not sufficient. The user's own captures may also be in `plugins/profile`, so a folder with more
    than one profiled run is not deleted.
    """
    if not folder.is_dir():
        raise AdvisorError(f"{folder} is a file; name a folder with --out.")
    if any(folder.iterdir()) and not holds_one_run(folder):
        raise AdvisorError(
            f"{folder} contains files that do not belong to an earlier run; name an empty or a new folder with --out."
        )


def _remove_run(folder: Path) -> None:
    shutil.rmtree(folder / _FOLDER, ignore_errors=True)
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
