"""Names that statements read and assign, for a straight run of statements.

In: statements of one function.  Out: sets of names. Where it is uncertain whether a name is read, it counts as read; where it is
uncertain whether it is assigned, it does not count as assigned.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

_SCOPES = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Nodes with names of their own."""


def names_read(node: ast.AST) -> set[str]:
    """Return every name that a piece of code may read, including functions inside it."""
    read = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)}
    changed = (inner.target for inner in ast.walk(node) if isinstance(inner, ast.AugAssign))
    return read | {target.id for target in changed if isinstance(target, ast.Name)}


def names_bound(nodes: Iterable[ast.AST]) -> dict[str, None]:
    """Return every name that statements may assign, in the order of the text; not those of functions inside them."""
    bound: dict[str, None] = {}
    pending = list(nodes)
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] = None
        elif isinstance(node, ast.FunctionDef):
            bound[node.name] = None
        elif isinstance(node, ast.alias):
            bound[(node.asname or node.name).partition(".")[0]] = None
        elif isinstance(node, ast.ExceptHandler) and node.name is not None:
            bound[node.name] = None
        if not isinstance(node, _SCOPES):
            pending[:0] = ast.iter_child_nodes(node)
    return bound


def surely_bound(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a run of statements assigns on every way through it."""
    return {name for statement in statements for name in _surely_bound(statement)}


def _surely_bound(statement: ast.stmt) -> Iterator[str]:
    match statement:
        case ast.Assign():
            for target in statement.targets:
                yield from _targets(target)
        case ast.AnnAssign() if statement.value is not None:
            yield from _targets(statement.target)
        case ast.AugAssign():
            yield from _targets(statement.target)
        case ast.If():
            yield from surely_bound(statement.body) & surely_bound(statement.orelse)
        case ast.With():
            for item in statement.items:
                yield from () if item.optional_vars is None else _targets(item.optional_vars)
            yield from surely_bound(statement.body)
        case ast.FunctionDef() | ast.ClassDef():
            yield statement.name
        case ast.Import() | ast.ImportFrom():
            yield from names_bound([statement])


def _targets(target: ast.expr) -> Iterator[str]:
    match target:
        case ast.Name():
            yield target.id
        case ast.Tuple() | ast.List():
            for element in target.elts:
                yield from _targets(element)
        case ast.Starred():
            yield from _targets(target.value)


def names_needed(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that a run of statements reads before it assigns them."""
    needed: set[str] = set()
    bound: set[str] = set()
    for statement in statements:
        needed |= names_read(statement) - bound
        bound |= surely_bound([statement])
    return needed
