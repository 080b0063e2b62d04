"""Recognises a change of a text that was seen before, however it is given: as another file, a patch or a revision.

In: the script, its arguments and `ChangedTexts`.  Out: two hashes, of what is changed and of the change. Texts are compared as
Python parses them, without layout and comments.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from advisor.gate.changed_texts import ChangedTexts
from advisor.model.regular_files import is_regular, read_regular
from advisor.rewrite.project import project_root

_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True, slots=True)
class ChangeIdentity:
    """Two changes with equal hashes are the same change of the same text."""

    base: str
    """Of the script's name, its arguments, its text, and the project's modules that it imports with or without the change."""
    diff: str
    """Of the lines that differ."""


def identify(script: Path | None, module: str | None, args: Sequence[str], texts: ChangedTexts) -> ChangeIdentity:
    """Return what identifies a change.

    The modules are found in the texts and never imported, so a name that is computed while the script runs is not followed.

    Args:
        script: The script; None for a module.
        module: The module to run, if there is no script.
        args: The script's arguments.
        texts: The change.
    """
    folder = Path.cwd() if script is None else script.parent if script.is_file() else script
    folder = folder.resolve()
    top = project_root(folder / "script.py")
    places = tuple(dict.fromkeys((folder, top, top / "src")))
    main = [script] if script is not None else [*_files_of((module or "").split("."), places)]
    starts = [*main, *(path / "__main__.py" for path in main if path.is_dir()), *texts.files]
    before = {path: pair[0] for path, pair in texts.files.items()}
    after = {path: pair[1] for path, pair in texts.files.items()}
    base = {**_with_imports(starts, places, after), **_with_imports(starts, places, before), **before}
    name = f"-m {module}" if script is None else script.name
    unchanged = [(_relative(path, folder), _text_of(data)) for path, data in sorted(base.items())]
    lines = [
        line
        for path, (old, new) in sorted(texts.files.items())
        for line in difflib.unified_diff(
            _text_of(old).splitlines(), _text_of(new).splitlines(), _relative(path, folder), n=0, lineterm=""
        )
    ]
    return ChangeIdentity(_hash([name, list(args), unchanged]), _hash(lines))


def _with_imports(starts: Sequence[Path], places: Sequence[Path], texts: Mapping[Path, bytes]) -> dict[Path, bytes]:
    """Return the texts of files and of all modules in `places` that they import, directly or not.

    `modulefinder` of the standard library reads files only, and some of these texts are in none.
    """
    files: dict[Path, bytes] = {}
    left = list(starts)
    while left:
        path = left.pop().resolve()
        if path in files:
            continue
        try:
            files[path] = texts[path] if path in texts else read_regular(path)
        except OSError:
            continue
        left += _imported(path, files[path], places)
    return files


def _imported(path: Path, data: bytes, places: Sequence[Path]) -> Iterator[Path]:
    """Yield the files that the import statements of a text may mean."""
    tree = _parsed(data)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _files_of(alias.name.split("."), places)
        elif isinstance(node, ast.ImportFrom) and node.level <= len(path.parents):
            inside = [path.parents[node.level - 1]] if node.level else places
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                yield from _files_of([*parts, alias.name], inside)


def _files_of(parts: Sequence[str], places: Sequence[Path]) -> Iterator[Path]:
    """Yield the files of a module and of the packages around it."""
    for place in places:
        for count in range(1, len(parts) + 1):
            package = place.joinpath(*parts[:count])
            candidates = package.with_name(f"{package.name}.py"), package / "__init__.py", package / "__main__.py"
            yield from (path for path in candidates if is_regular(path))


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


@cache
def _parsed(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the user's text, such as an invalid escape
        try:
            return ast.parse(data)
        except _UNPARSABLE:
            return None


@cache
def _text_of(data: bytes) -> str:
    """Return the text without layout and comments, or as it is if Python cannot parse it."""
    tree = _parsed(data)
    try:
        if tree is not None:
            return ast.unparse(tree)
    except _UNPARSABLE:
        pass
    return data.decode("utf-8", "backslashreplace")


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
