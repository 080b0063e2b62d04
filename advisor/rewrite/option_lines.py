"""Sets a field of `tf.data.Options` in the text.

In: `Source`, the located call, the field and its value.  Out: the splices: in the statements that create the options, if they are
simple and used by this call alone; else new options in a line before the statement, and a `.with_options(...)` after the call.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.links import insert_link, whole_line
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all, mentions


def change_option(source: Source, call: LocatedCall, option: str, value: str | None) -> list[Splice] | None:
    """Change, add or remove the line `options.<option> = ...` before `with_options(options)`.

    Args:
        source: The text.
        call: The call of `with_options`, or of another method.
        option: Name of the field.
        value: The new value as text; None to remove the line.

    Returns:
        The splices, or None if the options are not created by simple statements.

    Raises:
        CannotRewriteError: The line is not unique, or the options are also used by other calls.
    """
    argument = call.node.args[0].value if len(call.node.args) == 1 else None
    assigns: list[cst.Assign] = []
    if call.method == "with_options" and isinstance(argument, cst.Name):
        assigns = _assignments(source.scope(call.node), f"{argument.value}.{option}")
    if len(assigns) > 1:
        raise CannotRewriteError(f"The option {option} is set in {len(assigns)} places.")
    if assigns and source.span(assigns[0])[0] > call.end:
        raise CannotRewriteError(f"The option {option} is set after the call that uses it.")
    if assigns and isinstance(argument, cst.Name) and not _serves_one_call(source, call, argument.value):
        raise CannotRewriteError(f"The options {argument.value} are also used by other datasets.")
    if assigns and value is not None:
        return [Splice(*source.span(assigns[0].value), value)]
    if assigns:
        around = source.parents(assigns[0])
        line = whole_line(around[0], around[1])
        if line is None:
            raise CannotRewriteError(f"The line that sets {option} contains other statements.")
        return [Splice(*source.line_span(line), "")]
    if value is None:
        raise CannotRewriteError(f"The text does not show where the option {option} is set.")
    if call.method == "with_options" and isinstance(argument, cst.Name):
        return _add_line(source, call, argument.value, option, value)
    return None


def insert_options(source: Source, call: LocatedCall, maker: str, options: Mapping[str, str]) -> list[Splice]:
    """Create options in lines before the statement, and use them in a new link after the call.

    Args:
        source: The text.
        call: The call.
        maker: Code of the class `tf.data.Options`.
        options: Values of the fields as text.

    Raises:
        CannotRewriteError: The call is in a class body.
    """
    statement, block = source.statement(call.node)
    around = source.parents(block)[:1]
    if any(isinstance(parent, cst.ClassDef) for parent in around):
        raise CannotRewriteError(
            f"{call.method} is called in a class body, where options from a preceding line are not visible."
        )
    name = source.names.fresh("options")
    place, indent, newline = source.line_span(statement)[0], source.indent(statement), source.newline
    lines = [f"{name} = {maker}()", *(f"{name}.{option} = {value}" for option, value in options.items())]
    return [
        Splice(place, place, "".join(f"{indent}{line}{newline}" for line in lines)),
        insert_link(source, call, f".with_options({name})"),
    ]


def _add_line(source: Source, call: LocatedCall, name: str, option: str, value: str) -> list[Splice] | None:
    """Add `name.<option> = value` after the line `name = tf.data.Options()`."""
    made = _assignments(source.scope(call.node), name)
    if len(made) != 1 or not isinstance(made[0].value, cst.Call) or source.span(made[0])[0] > call.end:
        return None
    if (get_full_name_for_node(made[0].value.func) or "").rpartition(".")[2] != "Options" or made[0].value.args:
        return None
    parents = source.parents(made[0])
    line = parents[0]
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    if not _serves_one_call(source, call, name):
        return None
    place = source.line_span(line)[1]
    text = f"{source.indent(line)}{name}.{option} = {value}"
    is_last = source.text[place - 1 : place] not in ("\n", "\r")
    return [Splice(place, place, source.newline + text if is_last else text + source.newline)]


def _serves_one_call(source: Source, call: LocatedCall, name: str) -> bool:
    """Whether the options are only created, set, and passed to this call."""
    scope = source.scope(call.node)
    settings = sum(
        1
        for assign in find_all(scope, cst.Assign)
        for target in assign.targets
        if (get_full_name_for_node(target.target) or "").partition(".")[0] == name
    )
    body = scope.body if isinstance(scope, cst.FunctionDef | cst.ClassDef) else scope
    return mentions(body).count(name) == settings + 1


def _assignments(scope: cst.CSTNode, name: str) -> list[cst.Assign]:
    """The statements `name = ...` in a function or module."""
    return [
        assign
        for assign in find_all(scope, cst.Assign)
        if [get_full_name_for_node(target.target) for target in assign.targets] == [name]
    ]
