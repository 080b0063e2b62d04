"""Moves a function out of the function inside which it is defined, to the lines before it.

In: `Source`, and a call that takes the inner function.  Out: the changes, or CannotRewriteError with the first thing in the inner
function that may mean something else outside.
"""

from __future__ import annotations

import libcst as cst

from advisor.rewrite.arguments import find_argument
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.moved_lines import move_lines
from advisor.rewrite.names import names_in
from advisor.rewrite.scopes import Scopes
from advisor.rewrite.splices import Cut, Splice, lines_of
from advisor.rewrite.syntax import LocatedCall, Source, find_all, mentions


def inner_definition(
    source: Source, function: cst.Lambda | cst.FunctionDef, call: LocatedCall
) -> cst.FunctionDef | None:
    """Return the definition inside `function` of the function that a call takes; None if it takes another one.

    Only a function that nothing but this call uses is found.

    Args:
        source: The text of the file.
        function: The outer function.
        call: A call inside it that takes a function.
    """
    argument = find_argument(call, "map_func")
    if argument is None or not isinstance(function, cst.FunctionDef):
        return None
    name = source.text[argument.start : argument.end]
    definitions = [node for node in function.body.body if isinstance(node, cst.FunctionDef) and node.name.value == name]
    is_alone = source.names.bound[name] == 1 and mentions(source.module).count(name) == 2
    return definitions[0] if len(definitions) == 1 and is_alone else None


def move_definition(
    source: Source, definition: cst.FunctionDef, function: cst.FunctionDef, outer: LocatedCall
) -> list[Splice | Cut]:
    """Move a definition before the function that contains it.

    Args:
        source: The text.
        definition: The inner function, directly in the body of the other.
        function: The function.
        outer: The call that takes `function`.

    Raises:
        CannotRewriteError: The inner function may mean something else there.
    """
    _check_form(source, definition)
    _check_variables(source, definition, function, outer)
    place, indent = source.line_span(function)[0], source.indent(function)
    changes = move_lines(source, [definition], place, indent, with_blank_lines=True)
    lines = lines_of(source.text[:place])
    above = place
    while lines and lines[-1].startswith(f"{indent}#"):
        above -= len(lines.pop())
    gap = source.newline if indent else 2 * source.newline
    return [*(cut._replace(place=above) for cut in changes), Splice(above, above, gap)]


def _check_form(source: Source, definition: cst.FunctionDef) -> None:
    """Raise CannotRewriteError if a definition does more than define a function of its parameters."""
    parameters = definition.params
    every = [*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]
    is_simple = not definition.decorators and definition.asynchronous is None
    kinds = (cst.Nonlocal, cst.Global, cst.Yield, cst.Await)
    has_others = any(find_all(definition, kind) for kind in kinds) or any(
        parameter.default is not None for parameter in every
    )
    if not is_simple or has_others:
        raise CannotRewriteError(
            f"{definition.name.value} at line {source.line_number(definition)} is more than a plain function, so that it "
            "cannot be moved."
        )


def _check_variables(
    source: Source, definition: cst.FunctionDef, function: cst.FunctionDef, outer: LocatedCall
) -> None:
    """Raise CannotRewriteError unless every name in the inner function means the same outside of the other."""
    name, scopes = definition.name.value, Scopes(source.module)
    enclosing = set(names_in(function.params).bound)
    for line in function.body.body:
        enclosing |= set() if line is definition else set(names_in(line).bound)
    annotated = {mention for part in find_all(definition, cst.Annotation) for mention in mentions(part)}
    for node in find_all(definition, cst.Name):
        variable = scopes.find(node)
        is_taken = variable is not None and variable.scope is function
        if is_taken or (variable is None and node.value in annotated & enclosing):
            raise CannotRewriteError(
                f"{name} uses {node.value} of the function of {outer.method} (line {source.line_number(node)})."
            )
        is_own = variable is not None and definition in (variable.scope, *source.parents(variable.scope))
        is_changing = variable is not None and (variable.is_shared or len(variable.bindings) > 1)
        if variable is not None and not is_own and is_changing and variable.imported is None:
            raise CannotRewriteError(f"{node.value}, which {name} uses, is assigned more than once.")
