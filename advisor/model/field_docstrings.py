"""Reads the docstrings of a class's fields from its source, as Python does not keep them."""

from __future__ import annotations

import ast
import inspect
import itertools
from pathlib import Path


def field_docstrings(path: Path, class_name: str) -> dict[str, str]:
    """Return field name -> docstring on one line, for a class at the top level of the file `path`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next((n.body for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name), [])
    docstrings = {}
    for statement, following in itertools.pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
        ):
            value = following.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings[statement.target.id] = " ".join(inspect.cleandoc(value.value).split())
    return docstrings
