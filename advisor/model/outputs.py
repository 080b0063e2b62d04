"""Writes output files that the user requests (`--json`, `--html`, `--out`) without overwriting other data.

In: a path and its contents.  Out: the complete file or nothing; an AdvisorError if other data would be lost.

A file may be created, and a file that this tool wrote as the same kind may be replaced. Everything else is kept: scripts, inputs,
notes. Links are followed, and the same rules apply to their targets. Pipes and character devices (`/dev/stdout`) are written to.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from advisor.model.errors import AdvisorError
from advisor.model.own_files import FileKind, is_own_file
from advisor.model.run_folder import descriptor_of, whole_file

SOURCE_SUFFIXES = (".py", ".pyi", ".ipynb")
"""No output has one of these suffixes; such a name is a mistake, as in `--json train.py`."""


def check_output(option: str, path: Path, kind: FileKind | Callable[[Path], bool]) -> None:
    """Check that writing `path` overwrites nothing that this tool did not write.

    Args:
        option: The option that names the file, for the message.
        path: The file; it need not exist.
        kind: The kind of file to write, or a function that returns whether an existing file may be replaced.

    Raises:
        AdvisorError: The file must not or cannot be written.
    """
    if descriptor_of(path) is not None:
        return
    if path.name.endswith(SOURCE_SUFFIXES):
        raise AdvisorError(f"{option} {path} names a source file; choose another name.")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise AdvisorError(f"{option} {path} is a broken link; remove it or choose another name.") from None
        if not path.parent.is_dir():
            raise AdvisorError(f"Cannot write {path}: there is no folder {path.parent}.") from None
        return
    except OSError as error:
        raise AdvisorError(f"Cannot write {path}: {error.strerror or error}.") from None
    if stat.S_ISCHR(mode) or stat.S_ISFIFO(mode):
        return
    if stat.S_ISDIR(mode):
        raise AdvisorError(f"Cannot write {path}: Is a directory; {option} takes the name of a file.")
    if not stat.S_ISREG(mode):
        raise AdvisorError(f"{option} {path} is neither a file nor a pipe; choose another name.")
    if path.stat().st_size == 0:
        return
    may_replace = is_own_file(path, kind) if isinstance(kind, FileKind) else kind(path)
    if not may_replace:
        raise AdvisorError(
            f"{option} {path} would overwrite a file that advisor did not write as this kind of output; "
            "choose another name or remove the file first."
        )


@contextmanager
def output_file(option: str, path: Path, kind: FileKind | Callable[[Path], bool]) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` when the block ends. For a link, its target is replaced.

    Args:
        option: The option that names the file, for the message.
        path: The file; it need not exist.
        kind: As for `check_output`.

    Yields:
        The new file, opened for writing bytes; `path` is unchanged until the block ends.

    Raises:
        AdvisorError: As for `check_output`, or the file cannot be written.
    """
    check_output(option, path, kind)
    is_link = descriptor_of(path) is None and path.is_symlink()
    with whole_file(path.resolve() if is_link else path) as file:
        yield file


def write_output(option: str, path: Path, kind: FileKind | Callable[[Path], bool], data: bytes) -> None:
    """Write `data` to `path`.

    Args:
        option: The option that names the file, for the message.
        path: The file; it need not exist.
        kind: As for `check_output`.
        data: The whole content.

    Raises:
        AdvisorError: As for `output_file`.
    """
    with output_file(option, path, kind) as file:
        file.write(data)
