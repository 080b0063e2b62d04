"""Writes the files of tf.data service into a folder, without overwriting files of others.

In: a folder and the texts of `advisor.offload.files`.  Out: the paths. All files are checked before the first is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.model.own_files import FileKind, is_own_file
from advisor.model.run_folder import write_whole
from advisor.offload.files import NAMES


def check_folder(folder: Path) -> None:
    """Check that the files can be written into the folder, which need not exist.

    Raises:
        AdvisorError: It is no folder, or one of the names is taken by a file that advisor did not write.
    """
    if folder.exists() and not folder.is_dir():
        raise AdvisorError(f"{folder} is a file; name a folder with --files.")
    for name in NAMES:
        path = folder / name
        if path.is_symlink() or (path.exists() and not is_own_file(path, FileKind.SERVICE_FILE)):
            raise AdvisorError(
                f"{path} was not written by advisor offload, so nothing was run; name another folder with --files, or remove it."
            )


def write_files(folder: Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write the files, each completely.

    Raises:
        AdvisorError: As for `check_folder`, or a file cannot be written.
    """
    check_folder(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AdvisorError(f"Cannot write to {folder}: {error.strerror or error}.") from None
    paths = []
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
        paths.append(folder / name)
    return tuple(paths)
