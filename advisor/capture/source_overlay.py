"""A script whose files have another text for one run: no file of the user is touched, and nobody in the process can tell.

In: `{path of a file: its text for this run}`.  Out: hooks in the import system and in `linecache`. Code is compiled from the
new text under the file's own name, so that relative paths, `__file__`, tracebacks, `inspect.getsource` and AutoGraph (which
reads functions' source) see one consistent script. Nothing is written to `__pycache__`.
"""

from __future__ import annotations

import importlib.machinery
import io
import linecache
import os
import sys
import tokenize
import traceback
from collections.abc import Mapping
from types import CodeType
from typing import Any

_Lines = list[str]


class Overlay:
    """The texts of one run, found by whatever name a file is known under (relative, through a link)."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        """`texts`: path -> what the file is to hold, in the encoding that it declares."""
        self._texts = {os.path.realpath(path): text for path, text in texts.items()}

    def text(self, path: str) -> bytes | None:
        """What the file holds in this run; None: what stands on disk."""
        return self._texts.get(os.path.realpath(path)) if self._texts else None

    def install(self) -> None:
        """From here on, modules are compiled from these texts and `linecache` shows their lines."""
        if self._texts:
            self._install_in_imports()
            self._install_in_linecache()
            if sys.excepthook is sys.__excepthook__:  # written in C, it reads files itself; this one asks `linecache`
                sys.excepthook = traceback.print_exception

    def _install_in_imports(self) -> None:
        loader: Any = importlib.machinery.SourceFileLoader
        get_code, get_data = loader.get_code, loader.get_data

        def overlaid_code(self_: Any, fullname: str) -> CodeType | None:  # noqa: ANN401
            path = self_.get_filename(fullname)
            text = self.text(path)
            if text is None:
                return get_code(self_, fullname)  # type: ignore[no-any-return]
            # Compiled anew each time: never from, never into __pycache__.
            return self_.source_to_code(text, path)  # type: ignore[no-any-return]

        def overlaid_data(self_: Any, path: str) -> bytes:  # noqa: ANN401
            text = self.text(os.fspath(path))
            return get_data(self_, path) if text is None else text

        loader.get_code, loader.get_data = overlaid_code, overlaid_data

    def _install_in_linecache(self) -> None:
        """`updatecache` is what fills the cache, also after AutoGraph has thrown an entry out; so it is replaced.

        An entry without a modification time is never taken for stale.
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


def _lines(text: bytes) -> _Lines:
    """Lines as `linecache` keeps them: with `\\n`, the last one too."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(text).readline)
        lines = io.TextIOWrapper(io.BytesIO(text), encoding, line_buffering=True).readlines()
    except (SyntaxError, UnicodeDecodeError):
        return []
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines
