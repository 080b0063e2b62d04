"""Finds the function that a file imports from another file of the project: `decode`, `data.decode`.

In: the expression that names the function, and where the function was recorded to be defined.  Out: `Imported`, or
`CannotSplitError` if the import does not name that file. Nothing is imported or executed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import FileText, bindings_of

_INSTALLED = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, slots=True)
class Imported:
    """Where a function comes from that the file of the call imports."""

    file: str
    """The file that defines it, as recorded."""
    beside: str
    """The name after which a new function of that file is imported; empty if the call names the module or an object."""


def check_project(name: str, file: str) -> None:
    """Raise CannotSplitError if a file belongs to an installed package.

    Args:
        name: The function, for the message.
        file: The file that defines it.
    """
    if _INSTALLED & set(PurePath(file).parts):
        raise CannotSplitError(f"`{name}` is defined in an installed package")


def imported_function(
    called: ast.Name | ast.Attribute, name: str, caller: FileText, call_file: str, file: str
) -> Imported:
    """Return how the file of a call imports a function that another file defines at its top level.

    Args:
        called: What the call passes.
        name: The name of the function in its file.
        caller: The text with the call.
        call_file: Its file, as recorded.
        file: The file that defines the function, as recorded.

    Raises:
        CannotSplitError: The name has another meaning, or its module may be another file.
    """
    root = called
    attributes: list[str] = []
    while isinstance(root, ast.Attribute):
        attributes.insert(0, root.attr)
        root = root.value  # type: ignore[assignment]
    problem = CannotSplitError(f"`{ast.unparse(called)}` is not plainly imported from the file that defines it")
    if not isinstance(root, ast.Name):
        raise problem
    for scope in caller.scopes(called):
        bindings = bindings_of(root.id, scope)
        if not bindings:
            continue
        if len(bindings) > 1 or not isinstance(bindings[0], ast.alias) or isinstance(scope, ast.Lambda):
            raise problem
        alias = bindings[0]
        parts = [*_full_name(alias, caller.parents[alias], bool(alias.asname)), *attributes]
        if not parts or parts[-1] != name or not _is_file(parts[:-1], caller.parents[alias], call_file, file):
            raise problem
        return Imported(file, "" if attributes else root.id)
    raise problem


def _full_name(alias: ast.alias, statement: ast.AST, has_other_name: bool) -> list[str]:
    """The parts of the full name that an import gives a name, without the dots of a relative import."""
    if isinstance(statement, ast.ImportFrom):
        return [*(statement.module.split(".") if statement.module else []), alias.name]
    parts = alias.name.split(".")
    return parts if has_other_name else parts[:1]


def _is_file(module: Sequence[str], statement: ast.AST, call_file: str, file: str) -> bool:
    """Whether a module, as an import names it, is that file: `from .data import decode` in `a/train.py` is `a/data.py`.

    A module without a package must be beside the file or above it: `data` may be a file that imports the function from another
    `data.py`. A package may be anywhere, since `sys.path` is not known.
    """
    path = PurePath(file)
    parts = path.parts[:-1] if path.name == "__init__.py" else path.with_suffix("").parts
    if isinstance(statement, ast.ImportFrom) and statement.level:
        folder = PurePath(call_file).parent
        for _ in range(statement.level - 1):
            folder = folder.parent
        return parts == (*folder.parts, *module)
    is_near = any(parts == (*folder.parts, *module) for folder in PurePath(call_file).parents)
    return is_near or (len(module) > 1 and parts[-len(module) :] == tuple(module))
