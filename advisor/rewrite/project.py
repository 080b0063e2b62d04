"""Which files are the user's own to change, and their text as Python reads it.

In: a path and the project's folder.  Out: `SourceFile`, whose text is encoded to the very same bytes; CannotRewriteError says
why not.
"""

from __future__ import annotations

import io
import re
import sysconfig
import tokenize
from dataclasses import dataclass
from pathlib import Path

from advisor.model.regular_files import read_regular
from advisor.rewrite.cannot_rewrite import CannotRewriteError

_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
"""What stands in the top folder of a project."""
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_LIBRARY = re.compile(r"python\d(\.\d+)?t?|Lib")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text. `data` are its bytes, byte order mark included."""

    path: Path
    """With links followed: the file that is really changed."""
    data: bytes
    text: str
    encoding: str

    def encode(self, text: str) -> bytes:
        """Another text in this file's encoding. Raises CannotRewriteError for a character that it lacks."""
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError:
            raise CannotRewriteError(
                f"{self.path.name} is written in {self.encoding}, which lacks a character of the change."
            ) from None


def project_root(script: Path) -> Path:
    """The folder that counts as the script's project: the nearest one above it with `pyproject.toml`, `.git` or the like, else
    the script's own. Links are followed; neither a home folder nor the root of the file system is ever a project.
    """
    own = script.resolve().parent
    for folder in (own, *own.parents):
        if folder == Path.home() or folder.parent == folder:
            break
        if any((folder / marker).exists() for marker in _MARKERS):
            return folder
    return own


def user_file(file: str, root: Path) -> Path:
    """The real path of a file that may be changed. Raises CannotRewriteError for one that is not of the project under `root`."""
    root = root.resolve()
    path = (root / file).resolve()
    if not path.is_relative_to(root):
        raise CannotRewriteError(f"{path} is outside the project {root}.")
    inside = path.relative_to(root).parts[:-1]
    if _INSTALLED & set(inside) or _is_in_environment(path, root) or _is_in_standard_library(path):
        raise CannotRewriteError(f"{path} belongs to an installed package or to Python itself.")
    return path


def read_source(path: Path, data: bytes | None = None) -> SourceFile:
    """The text in the file's own encoding, line breaks as they are; `data` instead of what the file holds now.

    Raises CannotRewriteError if the text cannot be read, or would not give the same bytes again.
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
        raise CannotRewriteError(f"{path} is no text in the encoding that it declares.") from None
    if not is_faithful:
        raise CannotRewriteError(f"{path} would not come back byte for byte from the encoding {encoding}.")
    return SourceFile(path, data, text, encoding)


def _is_in_environment(path: Path, root: Path) -> bool:
    """Whether a virtual environment or a Conda one lies between the root and the file."""
    folders = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    return any((folder / "pyvenv.cfg").exists() or (folder / "conda-meta").is_dir() for folder in folders)


def _is_in_standard_library(path: Path) -> bool:
    """Whether the file is part of this Python, or of another that lies in the project."""
    paths = sysconfig.get_paths()
    if any(path.is_relative_to(Path(paths[name]).resolve()) for name in ("stdlib", "platstdlib")):
        return True
    return any(_LIBRARY.fullmatch(folder.name) and (folder / "os.py").exists() for folder in path.parents)
