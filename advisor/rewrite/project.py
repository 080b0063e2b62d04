"""Determines which files belong to the user's project, and reads their text as Python does.

In: a path and the project's folder.  Out: `SourceFile`, whose text encodes to exactly the same bytes, or CannotRewriteError.
"""

from __future__ import annotations

import io
import re
import sysconfig
import tokenize
from dataclasses import dataclass
from pathlib import Path

from advisor.model.installed_packages import installed_package
from advisor.model.regular_files import read_regular
from advisor.rewrite.cannot_rewrite import CannotRewriteError

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
"""Files in the top folder of a project."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_LIBRARY = re.compile(r"python\d(\.\d+)?t?|Lib")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text. `data` are its bytes, including the byte order mark."""

    path: Path
    """Real path, with symbolic links resolved."""
    data: bytes
    text: str
    encoding: str

    def encode(self, text: str) -> bytes:
        """Encode another text in this file's encoding.

        Raises:
            CannotRewriteError: The encoding lacks a character of the text.
        """
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError:
            raise CannotRewriteError(
                f"{self.path.name} is encoded in {self.encoding}, which lacks a character of the change."
            ) from None


def project_root(script: Path) -> Path:
    """Return the folder of the script's project.

    This is the nearest folder above the script with `pyproject.toml`, `.git` or the like, else the script's own folder. Symbolic
    links are resolved; the home folder and the root of the file system are never projects.
    """
    own = script.resolve().parent
    for folder in (own, *own.parents):
        if folder == Path.home() or folder.parent == folder:
            break
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
    return own


def user_file(file: str, root: Path) -> Path:
    """Return the real path of a file that may be changed.

    Args:
        file: The file as recorded; a relative path is relative to `root`.
        root: The project's folder.

    Raises:
        CannotRewriteError: The file does not belong to the project under `root`.
    """
    root = root.resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root):
        raise CannotRewriteError(f"{path} is outside the project {root}.")
    inside = path.relative_to(root).parts[:-1]
    if (
        _INSTALLED & set(inside)
        or _is_in_environment(path, root)
        or _is_in_standard_library(path)
        or _is_package(path, root)
    ):
        raise CannotRewriteError(f"{path} belongs to an installed package or to Python itself.")
    return path


def read_source(path: Path, data: bytes | None = None) -> SourceFile:
    """Decode a file in its own encoding, with line breaks unchanged.

    Args:
        path: The file.
        data: Bytes to decode instead of those of the file.

    Raises:
        CannotRewriteError: The text cannot be read, or would not encode to the same bytes.
    """
    try:
        data = read_regular(path) if data is None else data
    except OSError as error:
        raise CannotRewriteError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        is_faithful = text.encode(encoding) == data
    except (SyntaxError, UnicodeError, LookupError):
        raise CannotRewriteError(f"{path} is not valid text in its declared encoding.") from None
    if not is_faithful:
        raise CannotRewriteError(f"{path} cannot be decoded and encoded in {encoding} without changing bytes.")
    return SourceFile(path, data, text, encoding)


def _is_package(path: Path, root: Path) -> bool:
    """Whether pip installed the file into the project (`pip install --target`)."""
    return any(installed_package(path, folder) for folder in path.parents if folder.is_relative_to(root))


def _is_in_environment(path: Path, root: Path) -> bool:
    """Whether a virtual or Conda environment below the root contains the file."""
    folders = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    return any((folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir() for folder in folders)


def _is_in_standard_library(path: Path) -> bool:
    """Whether the file is part of this Python, or of another one inside the project."""
    paths = sysconfig.get_paths()
    if any(path.is_relative_to(Path(paths[name]).resolve()) for name in ("stdlib", "platstdlib")):
        return True
    return any(_LIBRARY.fullmatch(folder.name) and (folder / "os.py").exists() for folder in path.parents)
