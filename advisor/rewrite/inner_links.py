"""Moves the last link inside the function of an `interleave` or `flat_map` after a call that follows.

In: `Source`, the link, the call whose function contains it, and the call after which it goes.  Out: the `Cut`, or
CannotRewriteError: the function must be written for this call alone, and the moved arguments must mean the same outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.chains import check_way, is_same_chain
from advisor.rewrite.links import check_link, insert_link, link_span
from advisor.rewrite.names import names_in
from advisor.rewrite.splices import Cut
from advisor.rewrite.syntax import LocatedCall, Source, find_all, mentions


def move_out(source: Source, call: LocatedCall, outer: LocatedCall, after: LocatedCall) -> Cut:
    """Cut a call out of the function of another and insert it after a third one.

    Args:
        source: The text.
        call: The call to move; the function must return its result.
        outer: The `interleave` or `flat_map`.
        after: `outer`, or a call that follows it.

    Raises:
        CannotRewriteError: The move is unclear or would change the meaning.
    """
    check_link(call)
    assert call.link_start is not None
    function = _function(source, outer, call)
    if _result(function) is not call.node:
        raise CannotRewriteError(f"{call.method} is not the last call in the function of {outer.method}.")
    is_apart = after.node is not outer.node and not is_same_chain(outer, after)
    _check_names(source, call, outer, function, is_apart)
    if is_apart:
        check_way(source, outer, after)
    start, end = link_span(source, call)
    dot = call.link_start + len(call.dot_space)
    if "#" in source.text[start:end] or "#" in source.line_after(call.end):
        raise CannotRewriteError(
            f"A comment at {call.method} cannot be kept outside of the function of {outer.method}."
        )
    place, _, text = insert_link(source, after, "\0")
    return Cut(start, end, dot, call.end, place, text.partition("\0")[0])


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


def _result(function: cst.Lambda | cst.FunctionDef) -> cst.CSTNode | None:
    """Return the expression that is the only result of a function."""
    if isinstance(function, cst.Lambda):
        return function.body
    returns = find_all(function.body, cst.Return)
    return returns[0].value if len(returns) == 1 and not find_all(function.body, cst.Yield) else None


def _check_names(
    source: Source, call: LocatedCall, outer: LocatedCall, function: cst.Lambda | cst.FunctionDef, is_apart: bool
) -> None:
    """Raise CannotRewriteError unless the moved arguments use only names that mean the same outside of the function."""
    values = [argument.value for argument in call.node.args]
    used = {name for value in values for name in mentions(value)}
    own = {name for value in values for name in names_in(value).bound}
    inner = set(names_in(function).bound) - own if isinstance(function, cst.FunctionDef) else set(_parameters(function))
    if used & inner or any(find_all(value, kind) for value in values for kind in (cst.NamedExpr, cst.Await, cst.Yield)):
        raise CannotRewriteError(f"The arguments of {call.method} use names of the function of {outer.method}.")
    if isinstance(function, cst.FunctionDef):
        others = [name for name in used - own if source.names.bound[name] > 1]
        objects = [node.value for value in values for node in find_all(value, cst.Attribute)]
        objects += [node.value for value in values for node in find_all(value, cst.Subscript)]
        state = {name for node in objects for name in mentions(node) if source.names.path_of(name) is None} - own
        if others or (state and is_apart) or source.scope(function) is not source.module:
            raise CannotRewriteError(f"The arguments of {call.method} may mean something else after {outer.method}.")


def _parameters(function: cst.Lambda) -> list[str]:
    return [parameter.name.value for parameter in find_all(function.params, cst.Param)]
