"""A script that is read and not run: its text, the tf.data calls in it, and where each of them stands.

In: a path.  Out: `Script`, or one `AdvisorError` sentence.
"""

from __future__ import annotations

import ast
import tokenize
from dataclasses import dataclass
from pathlib import Path

from advisor.graph.source_calls import SourceCall, calls_of
from advisor.model.errors import AdvisorError
from advisor.model.recording import Site

MAX_SOURCE_BYTES = 5_000_000
"""Larger files are no source that a person wrote."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script's calls, and where each of them stands."""

    path: Path
    text: str
    calls: tuple[SourceCall, ...]
    """Every dataset that is made anywhere, in the order in which the script makes them."""

    def site(self, node: ast.Call) -> Site:
        """Where the call's method name stands, to the end of the whole call; columns in characters from 1."""
        lines = self.text.split("\n")  # as Python counts them: a form feed ends no line
        line, column = node.lineno, node.col_offset
        if isinstance(node.func, ast.Attribute):  # a chain over several lines: the name stands at the end of the callee
            line = node.func.end_lineno or line
            column = (node.func.end_col_offset or 0) - len(node.func.attr.encode())
        end_line = node.end_lineno or line

        def characters(number: int, offset: int) -> int:
            return len(lines[number - 1].encode()[:offset].decode(errors="replace")) + 1

        return Site(
            str(self.path), line, characters(line, column), end_line, characters(end_line, node.end_col_offset or 0)
        )


def read_script(path: Path) -> Script:
    """The calls in the script at `path`. Raises AdvisorError where it cannot be read or is no Python."""
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise AdvisorError(f"{path} is too large to be a script.")
        if not path.is_file():  # opening a named pipe would wait for ever
            raise AdvisorError(f"{path} cannot be read: it is no file.")
        with tokenize.open(path) as file:  # minds a byte order mark and a declared encoding
            text = file.read()
        tree = ast.parse(text)
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise AdvisorError(f"{path} is no Python that can be read ({type(error).__name__}).") from None
    try:
        return Script(path.resolve(), text, calls_of(tree))
    except RecursionError:
        raise AdvisorError(f"{path} is nested too deeply to be read.") from None
