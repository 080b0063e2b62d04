"""Moves links at the end of the function of an `interleave` or `flat_map` after a call that follows.

In: `Source`, the link, the call whose function contains it, and the call after which it goes.  Out: the changes, or
CannotRewriteError: the function must be written for this call alone, nothing but what moves too may use the result of the link
there, and the moved arguments must mean the same outside of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.chains import check_way, is_same_chain
from advisor.rewrite.inner_functions import inner_definition, move_definition
from advisor.rewrite.links import check_link, insert_link, link_span, self_assignment
from advisor.rewrite.names import names_in
from advisor.rewrite.splices import Cut, Splice
from advisor.rewrite.syntax import NEWLINE, LocatedCall, Source, find_all, mentions

_STAYING = frozenset({"prefetch"})
"""Methods that may follow the link in the function and stay there. `advisor.predict.hoisting` has judged the recorded calls."""


def move_out(
    source: Source, call: LocatedCall, outer: LocatedCall, after: LocatedCall, moving: Collection[cst.Call] = ()
) -> list[Splice | Cut]:
    """Cut a call out of the function of another and insert it after a third one.

    Args:
        source: The text.
        call: The call to move; the function must return its result, or what other moved calls and a `prefetch` make of it.
        outer: The `interleave` or `flat_map`.
        after: `outer`, or a call that follows it.
        moving: All calls that move out of the function.

    Raises:
        CannotRewriteError: The move is unclear or would change the meaning.
    """
    check_link(call)
    assert call.link_start is not None
    function = _function(source, outer, call)
    _check_returned(function, call, outer, moving)
    definition = inner_definition(source, function, call)
    is_apart = after.node is not outer.node and not is_same_chain(outer, after)
    _check_names(source, call, outer, function, is_apart, "" if definition is None else definition.name.value)
    if is_apart:
        check_way(source, outer, after)
    moved = [_cut(source, call, outer, after)]
    if definition is None or not isinstance(function, cst.FunctionDef):
        return [*moved]
    return [*move_definition(source, definition, function, outer), *moved]


def _cut(source: Source, call: LocatedCall, outer: LocatedCall, after: LocatedCall) -> Cut:
    """The link with its line or its lines; a comment behind it moves along where it can, or stays where other code does."""
    assert call.link_start is not None
    line = self_assignment(source, call)
    start, end = link_span(source, call) if line is None else source.line_span(line)
    dot = call.link_start + len(call.dot_space)
    place, _, text = insert_link(source, after, "\0")
    before, rest = text.partition("\0")[0], source.line_after(call.end)
    own_line = source.text[start - 1 : start] in ("", "\n", "\r")
    has_comment = rest.lstrip().startswith("#") and own_line
    if "#" in source.text[start:dot] or (has_comment and NEWLINE.search(text) is None):
        raise CannotRewriteError(
            f"A comment at {call.method} cannot be kept outside of the function of {outer.method}."
        )
    return Cut(start, end, dot, call.end + len(rest.rstrip()) if has_comment else call.end, place, before)


def _function(source: Source, outer: LocatedCall, call: LocatedCall) -> cst.Lambda | cst.FunctionDef:
    """Return the function of `outer` as it is written, if nothing else in the file uses it."""
    unclear = CannotRewriteError(
        f"The function of {outer.method} that contains {call.method} may also be used elsewhere."
    )
    argument = find_argument(outer, "map_func")
    inside: Sequence[cst.CSTNode] = source.parents(call.node)
    innermost = next((node for node in inside if isinstance(node, cst.Lambda | cst.FunctionDef)), None)
    if argument is None or innermost is None:
        raise unclear
    if isinstance(innermost, cst.Lambda):
        if all(innermost is not given.value for given in outer.node.args):
            raise unclear
        return innermost
    name = innermost.name.value
    uses = mentions(source.module).count(name)  # its definition and this call
    is_alone = source.text[argument.start : argument.end] == name and source.names.bound[name] == 1 and uses == 2
    if not is_alone or innermost.decorators:
        raise unclear
    return innermost


def _check_returned(
    function: cst.Lambda | cst.FunctionDef, call: LocatedCall, outer: LocatedCall, moving: Collection[cst.Call]
) -> None:
    """Raise CannotRewriteError unless the result of the call is what the function returns, but for moved calls and prefetches."""
    value, index = _returned(function)
    while value is not call.node:
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            is_moved = any(value is other for other in moving)
            if is_moved or value.func.attr.value in _STAYING:
                value = value.func.value
                continue
        if isinstance(value, cst.Name) and isinstance(function, cst.FunctionDef) and index is not None:
            value, index = _assigned_before(function, value.value, index)
            continue
        raise CannotRewriteError(f"{call.method} is not the last call in the function of {outer.method}.")


def _returned(function: cst.Lambda | cst.FunctionDef) -> tuple[cst.CSTNode | None, int | None]:
    """Return the expression that is the only result of a function, and the index of its statement in the body."""
    if isinstance(function, cst.Lambda):
        return function.body, None
    returns = _own(function.body, cst.Return)
    if len(returns) != 1 or _own(function.body, cst.Yield):
        return None, None
    last = function.body.body[-1] if function.body.body else None
    is_last = isinstance(last, cst.SimpleStatementLine) and last.body[-1] is returns[0] and len(last.body) == 1
    value = returns[0].value if isinstance(returns[0], cst.Return) else None
    return value, len(function.body.body) - 1 if is_last else None


def _assigned_before(function: cst.FunctionDef, name: str, index: int) -> tuple[cst.CSTNode | None, int | None]:
    """Return what the statement directly before another one assigns to a name, and the index of that statement."""
    line = function.body.body[index - 1] if index > 0 else None
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None, None
    assign = line.body[0]
    kinds = (cst.Lambda, cst.FunctionDef)
    is_seen_elsewhere = any(name in mentions(node) for kind in kinds for node in find_all(function.body, kind))
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or is_seen_elsewhere:
        return None, None
    target = assign.targets[0].target
    is_same = isinstance(target, cst.Name) and target.value == name
    return (assign.value, index - 1) if is_same else (None, None)


def _own(body: cst.CSTNode, kind: type[cst.CSTNode]) -> list[cst.CSTNode]:
    """Return the nodes of a kind in the body of a function, without those in functions inside it."""
    nodes: list[cst.CSTNode] = []

    class Finder(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, kind):
                nodes.append(node)
            return not isinstance(node, cst.FunctionDef | cst.Lambda)

    body.visit(Finder())
    return nodes


def _check_names(
    source: Source,
    call: LocatedCall,
    outer: LocatedCall,
    function: cst.Lambda | cst.FunctionDef,
    is_apart: bool,
    moved: str,
) -> None:
    """Raise CannotRewriteError unless the moved arguments use only names that mean the same outside of the function.

    Args:
        source: The text.
        call: The call to move.
        outer: The call whose function contains it.
        function: That function.
        is_apart: Whether the call goes to another statement than that of `outer`.
        moved: Name of a function inside the function that moves with the call; empty if none does.
    """
    values = [argument.value for argument in call.node.args]
    used = {name for value in values for name in mentions(value)} - {moved}
    own = {name for value in values for name in names_in(value).bound}
    inner = set(names_in(function).bound) - own if isinstance(function, cst.FunctionDef) else set(_parameters(function))
    taken = sorted(used & inner)
    if taken:
        raise CannotRewriteError(
            f"The arguments of {call.method} use names of the function of {outer.method}: {', '.join(taken)} "
            f"(line {source.line_number(call.node)})."
        )
    if any(find_all(value, kind) for value in values for kind in (cst.NamedExpr, cst.Await, cst.Yield)):
        raise CannotRewriteError(f"The arguments of {call.method} do more than name values.")
    if isinstance(function, cst.FunctionDef):
        others = [name for name in used - own if source.names.bound[name] > 1]
        objects = [node.value for value in values for node in find_all(value, cst.Attribute)]
        objects += [node.value for value in values for node in find_all(value, cst.Subscript)]
        state = {name for node in objects for name in mentions(node) if source.names.path_of(name) is None} - own
        around = source.scope(function)
        is_visible = around is source.module or (
            isinstance(around, cst.FunctionDef) and around is source.scope(outer.node)
        )
        if others or (state and is_apart) or not is_visible:
            raise CannotRewriteError(f"The arguments of {call.method} may mean something else after {outer.method}.")


def _parameters(function: cst.Lambda) -> list[str]:
    return [parameter.name.value for parameter in find_all(function.params, cst.Param)]
