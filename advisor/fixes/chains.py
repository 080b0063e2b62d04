"""How calls hang together in a text: chains, and lines that assign a name from itself.

In: `Source` and calls located in it.  Out: whether and where they can be cut apart.
"""

from __future__ import annotations

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.fixes.syntax import LocatedCall, Source


def self_assignment(source: Source, call: LocatedCall) -> cst.SimpleStatementLine | None:
    """The line `ds = ds.method(...)`, of which nothing would be left but `ds = ds`."""
    parents = source.parents(call.node)
    assign = parents[0]
    if not isinstance(assign, cst.Assign) or not isinstance(call.node.func, cst.Attribute) or len(assign.targets) != 1:
        return None
    target, receiver = assign.targets[0].target, call.node.func.value
    if not isinstance(target, cst.Name) or not isinstance(receiver, cst.Name) or target.value != receiver.value:
        return None
    return whole_line(parents[1], parents[2])


def whole_line(statement: cst.CSTNode, block: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The statement's line, if it can go: it holds nothing else, and its block more than it."""
    is_alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    has_others = isinstance(block, cst.Module) or (isinstance(block, cst.IndentedBlock) and len(block.body) > 1)
    return statement if is_alone and has_others and isinstance(statement, cst.SimpleStatementLine) else None


def is_assigned_between(source: Source, line: cst.SimpleStatementLine, after: LocatedCall) -> bool:
    """Whether the lines `ds = ds.a()`, ..., `ds = ds.after()` follow each other in one block, each with one link or more."""
    parents = source.parents(after.node)
    block = source.parents(line)[0]
    if len(parents) < 3 or parents[2] is not block or not isinstance(block, cst.Module | cst.IndentedBlock):
        return False
    body = list(block.body)
    first, last = body.index(line), next((i for i, each in enumerate(body) if each is parents[1]), -1)
    name = _assigned_from_itself(line)
    is_followed = source.text[source.line_span(parents[1])[1] - 1 :][:1] in ("\n", "\r")
    return is_followed and first < last and all(_assigned_from_itself(each) == name for each in body[first : last + 1])


def _assigned_from_itself(statement: cst.CSTNode) -> str | None:
    """`ds` for a line `ds = ds.a().b()`."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    assign = statement.body[0]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target, value = assign.targets[0].target, assign.value
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        value = value.func.value
    is_same = isinstance(target, cst.Name) and isinstance(value, cst.Name) and target.value == value.value
    return target.value if is_same and isinstance(target, cst.Name) else None


def is_chained(outer: cst.BaseExpression, inner: cst.Call) -> bool:
    """Whether `inner` is a receiver of `outer` in `inner(...).a(...).outer(...)`."""
    while isinstance(outer, cst.Call) and isinstance(outer.func, cst.Attribute):
        outer = outer.func.value
        if outer is inner:
            return True
    return False


def assignments(scope: cst.CSTNode, name: str) -> list[cst.Assign]:
    """The statements `name = ...` in a function or module."""
    found: list[cst.Assign] = []

    class Assignments(cst.CSTVisitor):
        def visit_Assign(self, node: cst.Assign) -> None:
            if [get_full_name_for_node(target.target) for target in node.targets] == [name]:
                found.append(node)

    scope.visit(Assignments())
    return found
