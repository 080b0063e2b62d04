"""Joins an assignment with the one after it that only gives its value another name, where a change has left the two.

In: the text before and after a change: `windows = rows.window(3)`, `pairs = windows.map(f)`, and the same without the calls of
`pairs`.  Out: the text after the change, in which `pairs` is assigned at once.

Names of a module stay: other modules may import them.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from itertools import pairwise

from advisor.rewrite.splices import lines_of

_ALIAS = re.compile(r"\w+ = \w+")
_SEEING_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions that may use a variable without its name in the text."""


def without_aliases(before: str, after: str) -> str:
    """Return the text after a change, without lines `x = y` that the change made, where `y` is used nowhere else.

    Args:
        before: The text before the change.
        after: The text after it, valid Python.
    """
    known = {line.strip() for line in lines_of(before)}
    if not any(_ALIAS.fullmatch(line.strip()) and line.strip() not in known for line in lines_of(after)):
        return after
    while (joined := _with_one_less(after, known)) is not None:
        after = joined
    return after


def _with_one_less(text: str, known: set[str]) -> str | None:
    """Join the first pair of assignments; None if there is none."""
    lines = lines_of(text)
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for value, alias in _pairs(function):
            name, other = _names(value, alias)
            line = lines[alias.lineno - 1].strip()
            if line != f"{other} = {name}" or line in known or alias.lineno != (value.end_lineno or 0) + 1:
                continue
            first = lines[value.lineno - 1]
            start = len(first) - len(first.lstrip())
            if not first.startswith(name, start) or not _is_only_there(function, name, lines):
                continue
            lines[value.lineno - 1] = f"{first[:start]}{other}{first[start + len(name) :]}"
            del lines[alias.lineno - 1]
            return "".join(lines)
    return None


def _pairs(function: ast.AST) -> Iterator[tuple[ast.Assign, ast.Assign]]:
    """Yield `y = ...` and `x = y` that follow each other in a block; not those of a class in the function."""
    nodes = [function]
    for node in nodes:
        nodes += [inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, ast.ClassDef)]
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            if not isinstance(block, list):
                continue
            for value, alias in pairwise(block):
                if isinstance(value, ast.Assign) and isinstance(alias, ast.Assign) and all(_names(value, alias)):
                    yield value, alias


def _names(value: ast.Assign, alias: ast.Assign) -> tuple[str, str]:
    """(the name that is assigned, the other one that it gets); empty if the two are something else."""
    targets = [*value.targets, *alias.targets]
    if len(targets) == 2 and isinstance(alias.value, ast.Name):
        first, second = targets
        if isinstance(first, ast.Name) and isinstance(second, ast.Name) and alias.value.id == first.id != second.id:
            return first.id, second.id
    return "", ""


def _is_only_there(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, lines: Sequence[str]) -> bool:
    """Whether the text of a function has a name twice, as it is assigned and as it gets another name."""
    text = "".join(lines[function.lineno - 1 : function.end_lineno])
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, IndentationError):
        return False
    names = [token.string for token in tokens if token.type == tokenize.NAME]
    # Up to Python 3.11, an f-string is one token.
    texts = [token.string for token in tokens if token.type == tokenize.STRING and "f" in token.string[:2].lower()]
    return names.count(name) == 2 and not _SEEING_NAMES.intersection(names) and not any(name in text for text in texts)
