"""The recorded calls of a source text, and the text after edits, for tests."""

from __future__ import annotations

import ast

from advisor.model.calls import Call, Site
from advisor.model.edits import Code, Edit, InsertAfter, SetArgument
from advisor.model.finding import Fix, Safety
from advisor.rewrite.source import rewrite

AUTOTUNE = Code("tf.data.AUTOTUNE")
PARALLEL = SetArgument("map", "num_parallel_calls", AUTOTUNE)
CACHE = InsertAfter("map", "cache")
PREFETCH = InsertAfter("batch", "prefetch", (("", AUTOTUNE),))


def calls_in(text: str, file: str = "train.py") -> dict[str, Call]:
    """Calls as the recorder sees them: by method name, the last one of a name winning; columns in characters."""
    calls = {}
    lines = text.splitlines(keepends=True)
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        line = function.end_lineno

        def character(line: int, column: int) -> int:
            return len(lines[line - 1].encode()[:column].decode())

        start = character(line, function.end_col_offset) - len(name)
        site = Site(file, line, start + 1, node.end_lineno, character(node.end_lineno, node.end_col_offset) + 1)
        calls[name] = Call(name, name, site)
    return calls


def fix(*edits: Edit) -> Fix:
    return Fix(edits, Safety.EXACT, is_auto=True)


def rewritten(text: str, *edits: Edit) -> str | None:
    return rewrite(text, fix(*edits), calls_in(text))
