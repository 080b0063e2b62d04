"""Finds the part of a statement that computes the same every time and is evaluated first: `decode(x)` in `augment(decode(x))`.

In: a statement and the functions that it calls, as TensorFlow traced them.  Out: the expression, or None.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from advisor.model.calls import FunctionLine
from advisor.model.catalog import ELEMENTWISE_OPS

_CHEAP_OPS = ELEMENTWISE_OPS | {
    "ExpandDims", "Fill", "GatherV2", "Pack", "Prod", "Range", "Rank", "Reshape", "Shape", "Size", "Slice", "Squeeze",
    "StridedSlice", "Unpack",
}  # fmt: skip
"""Arithmetic, and ops on shapes."""


def fixed_part(statement: ast.stmt, lines: Sequence[FunctionLine]) -> ast.expr | None:
    """Return the largest expression that can be evaluated before the rest of the statement and draws no random number.

    Args:
        statement: A statement that draws random numbers.
        lines: What its lines do.
    """
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return | ast.Expr) or value is None:
        return None
    drawing = {line.called for line in lines if line.is_random}
    working = {line.called for line in lines if line.ops and not line.is_random}
    if not drawing <= called_in(statement):  # through another name, so that its place in the statement is unknown
        return None
    for part in _evaluated_first(value):
        called = called_in(part)
        if not called & drawing:
            return part if called & working else None
    return None


def is_worth_it(ops: Collection[str]) -> bool:
    """Return whether a part of a statement does more than arithmetic, which is not worth a value of its own."""
    return not _CHEAP_OPS.issuperset(ops)


def called_in(node: ast.AST) -> set[str]:
    """Return the names of the functions that a piece of code calls, without their modules or objects."""
    calls = (inner.func for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return {ast.unparse(function).rpartition(".")[2] for function in calls}


def _evaluated_first(node: ast.expr) -> Iterator[ast.expr]:
    """Yield an expression, the operand that it evaluates first, the first operand of that, and so on."""
    following: ast.expr | None = node
    while following is not None and not _is_simple(following):
        yield following
        following = next((operand for operand in operands(following) if not _is_simple(operand)), None)


def operands(node: ast.expr) -> Sequence[ast.expr]:
    """Return the operands of an expression in the order of evaluation, all of which it evaluates; none if that is unclear."""
    match node:
        case ast.Call():
            has_stars = any(isinstance(value, ast.Starred) for value in node.args) or any(
                keyword.arg is None for keyword in node.keywords
            )
            arguments = [] if has_stars else [*node.args, *(keyword.value for keyword in node.keywords)]
            return [node.func, *arguments]
        case ast.BinOp():
            return [node.left, node.right]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Attribute():
            return [node.value]
        case ast.Subscript():
            return [node.value]
        case ast.Tuple() | ast.List():
            return node.elts
        case ast.Dict() if None not in node.keys:
            return [
                operand for pair in zip(node.keys, node.values, strict=True) for operand in pair if operand is not None
            ]
        case _:
            return []


def _is_simple(node: ast.expr) -> bool:
    """Whether evaluating the expression only looks something up."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name | ast.Constant)
