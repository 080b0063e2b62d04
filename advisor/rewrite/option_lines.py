"""A field of `tf.data.Options`, set in the text.

In: `Source`, the located call, the field and its value.  Out: the splices: in the lines that make the options, if they are plain
and serve this call alone; else new options in a line before the statement, and a `.with_options(...)` behind the call.
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
    """Change the one line `options.<option> = ...` before `with_options(options)`, add it to the others, or (None) take it out.

    None: the options are not made by plain lines. Raises CannotRewriteError for a value to take out that is not plain to see.
    """
    argument = call.node.args[0].value if len(call.node.args) == 1 else None
    found: list[cst.Assign] = []
    if call.method == "with_options" and isinstance(argument, cst.Name):
        found = _assignments(source.scope(call.node), f"{argument.value}.{option}")
    if len(found) > 1:
        raise CannotRewriteError(f"The option {option} is set in {len(found)} places.")
    if found and source.span(found[0])[0] > call.end:
        raise CannotRewriteError(f"The option {option} is set behind the call that uses it.")
    if found and isinstance(argument, cst.Name) and not _serves_one_call(source, call, argument.value):
        raise CannotRewriteError(f"The options {argument.value} serve other datasets, too.")
    if found and value is not None:
        return [Splice(*source.span(found[0].value), value)]
    if found:
        around = source.parents(found[0])
        line = whole_line(around[0], around[1])
        if line is None:
            raise CannotRewriteError(f"The line that sets {option} holds more than that.")
        return [Splice(*source.line_span(line), "")]
    if value is None:
        raise CannotRewriteError(f"Where the option {option} is set is not plain from the text.")
    if call.method == "with_options" and isinstance(argument, cst.Name):
        return _add_line(source, call, argument.value, option, value)
    return None


def insert_options(source: Source, call: LocatedCall, maker: str, options: Mapping[str, str]) -> list[Splice]:
    """New options in lines before the statement, used by a new link behind the call. `maker` is the code of the class."""
    statement, block = source.statement(call.node)
    around = source.parents(block)[:1]
    if any(isinstance(each, cst.ClassDef) for each in around):
        raise CannotRewriteError(
            f"{call.method} is called in a class, where options made in a line before cannot be seen."
        )
    name = source.names.fresh("options")
    place, indent, newline = source.line_span(statement)[0], source.indent(statement), source.newline
    lines = [f"{name} = {maker}()", *(f"{name}.{option} = {value}" for option, value in options.items())]
    return [
        Splice(place, place, "".join(f"{indent}{line}{newline}" for line in lines)),
        insert_link(source, call, f".with_options({name})"),
    ]


def _add_line(source: Source, call: LocatedCall, name: str, option: str, value: str) -> list[Splice] | None:
    """`name.<option> = value` behind the line `name = tf.data.Options()`."""
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
    """Whether the options are only made, set, and given to this call."""
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
