"""Reads a script without running it: its text, its tf.data calls and their locations.

In: a path.  Out: `Script`, or one `AdvisorError` sentence.
"""

from __future__ import annotations

import ast
import tokenize
from dataclasses import dataclass
from pathlib import Path

from advisor.graph.source_calls import SourceCall, calls_of
from advisor.model.calls import Site
from advisor.model.errors import AdvisorError

MAX_SOURCE_BYTES = 5_000_000
"""Maximum size of a script; larger files are not hand-written source code."""


@dataclass(frozen=True, slots=True)
class Script:
    """A script, its dataset calls and their locations."""

    path: Path
    text: str
    calls: tuple[SourceCall, ...]
    """Every call that creates a dataset, in execution order."""

    def site(self, node: ast.Call) -> Site:
        """Return the location from the call's method name to the end of the call; columns are in characters, from 1."""
        lines = self.text.split("\n")  # as Python counts lines: a form feed does not end one
        line, column = node.lineno, node.col_offset
        if isinstance(node.func, ast.Attribute):  # in a chain over several lines, the name is at the end of the callee
            line = node.func.end_lineno or line
            column = (node.func.end_col_offset or 0) - len(node.func.attr.encode())
        end_line = node.end_lineno or line

        def characters(number: int, offset: int) -> int:
            return len(lines[number - 1].encode()[:offset].decode(errors="replace")) + 1

        return Site(
            str(self.path), line, characters(line, column), end_line, characters(end_line, node.end_col_offset or 0)
        )


def read_script(path: Path) -> Script:
    """Read the calls of a script.

    Raises:
        AdvisorError: The file cannot be read or is not valid Python.
    """
    try:
        if path.stat().st_size > MAX_SOURCE_BYTES:
            raise AdvisorError(f"{path} is too large to be a script.")
        if not path.is_file():  # opening a named pipe would block
            raise AdvisorError(f"{path} cannot be read: it is not a file.")
        with tokenize.open(path) as file:  # respects a byte order mark and a declared encoding
            text = file.read()
        tree = ast.parse(text)
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise AdvisorError(f"{path} is not valid Python ({type(error).__name__}).") from None
    try:
        return Script(path.resolve(), text, calls_of(tree))
    except RecursionError:
        raise AdvisorError(f"{path} cannot be read: it is nested too deeply.") from None
