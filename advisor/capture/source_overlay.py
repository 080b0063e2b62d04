"""Replaces the text of source files for one run, without changing any file on disk.

In: `{path of a file: its text for this run}`.  Out: hooks in the import system and in `linecache`. Code is compiled from the
new text under the original file name. So relative paths, `__file__`, tracebacks, `inspect.getsource` and AutoGraph (which
reads the source of functions) are consistent with each other. Nothing is written to `__pycache__`.
Modules whose file does not exist are found as well.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import os
import sys
import tokenize
import traceback
from collections.abc import Mapping, Sequence
from types import CodeType, ModuleType
from typing import Any

_Lines = list[str]


class Overlay:
    """The replaced source files of one run. Files are found by any path: absolute, relative or through a link."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        """Create an overlay.

        Args:
            texts: Path of each replaced file -> its new content, in the encoding that the content declares.
        """
        self._texts = {os.path.realpath(path): text for path, text in texts.items()}

    def text(self, path: str) -> bytes | None:
        """Return the content of the file in this run; None if it is not replaced."""
        return self._texts.get(os.path.realpath(path)) if self._texts else None

    def install(self) -> None:
        """Install the hooks: modules are compiled from these texts, and `linecache` returns their lines."""
        if self._texts:
            self._install_in_imports()
            sys.meta_path.append(_MissingFiles(self._texts))
            self._install_in_linecache()
            if (
                sys.excepthook is sys.__excepthook__
            ):  # it is written in C and reads files itself; this one uses `linecache`
                sys.excepthook = traceback.print_exception

    def _install_in_imports(self) -> None:
        loader: Any = importlib.machinery.SourceFileLoader
        get_code, get_data = loader.get_code, loader.get_data

        def overlaid_code(self_: Any, fullname: str) -> CodeType | None:  # noqa: ANN401
            path = self_.get_filename(fullname)
            text = self.text(path)
            if text is None:
                return get_code(self_, fullname)  # type: ignore[no-any-return]
            # Always compiled: __pycache__ is neither read nor written.
            return self_.source_to_code(text, path)  # type: ignore[no-any-return]

        def overlaid_data(self_: Any, path: str) -> bytes:  # noqa: ANN401
            text = self.text(os.fspath(path))
            return get_data(self_, path) if text is None else text

        loader.get_code, loader.get_data = overlaid_code, overlaid_data

    def _install_in_linecache(self) -> None:
        """Replace `linecache.updatecache`, which fills the cache, also after AutoGraph has removed an entry.

        `linecache` never treats an entry without a modification time as stale.
        """
        original = linecache.updatecache

        def updatecache(filename: str, module_globals: dict[str, Any] | None = None) -> _Lines:
            text = self.text(filename) if filename and not filename.startswith("<") else None
            if text is None:
                return original(filename, module_globals)
            lines = _lines(text)
            linecache.cache[filename] = (len(text), None, lines, filename)
            return lines

        linecache.updatecache = updatecache


class _MissingFiles(importlib.abc.MetaPathFinder):
    """Finds modules whose file is absent from the disk: another revision of the script may import them."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._files = frozenset(path for path in texts if not os.path.exists(path))  # noqa: PTH110

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Look where Python has looked before; a package precedes a module of the same name."""
        for folder in (sys.path if path is None else path) if self._files else ():
            place = os.path.join(os.path.realpath(folder), fullname.rpartition(".")[2])  # noqa: PTH118
            package = os.path.join(place, "__init__.py")  # noqa: PTH118
            if package in self._files:
                return importlib.util.spec_from_file_location(fullname, package, submodule_search_locations=[place])
            if f"{place}.py" in self._files:
                return importlib.util.spec_from_file_location(fullname, f"{place}.py")
        return None


def _lines(text: bytes) -> _Lines:
    """Return the lines as `linecache` stores them: each one, including the last, ends with a newline."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
        lines = io.TextIOWrapper(io.BytesIO(text), encoding, line_buffering=True).readlines()
    except (SyntaxError, UnicodeDecodeError):
        return []
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines
