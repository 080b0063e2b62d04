"""Inserts and removes links of a chain in the style of their neighbours: one line, a line each, backslashes, comments.

In: `Source` and a located call.  Out: the splices.
"""

from __future__ import annotations

import re

import libcst as cst
from libcst.helpers import get_full_name_for_node

from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import NEWLINE, LocatedCall, Source

_NEXT_LINE = re.compile(
    r"[ \t]*(?:\\(?=[\r\n])|#[^\r\n]*)?(?P<break>\r\n|\r|\n)(?:[ \t]*#[^\r\n]*(?:\r\n|\r|\n))*(?P<indent>[ \t]*)(?=\.)"
)
"""From the end of a call to the dot of the next link on a line of its own."""


def insert_link(source: Source, call: LocatedCall, link: str) -> Splice:
    """Insert `.method(...)` after a call, on its own line if the chain has one call per line.

    Args:
        source: The text of the file, whose indentation and line breaks are followed.
        call: The call that the link follows.
        link: The text `.method(...)`, without spaces around it.
    """
    indent, has_backslash = _own_line(source, call)
    if indent is None:
        return Splice(call.end, call.end, link)
    if has_backslash:
        return Splice(call.end, call.end, f" \\{source.newline}{indent}{link}")
    rest = source.line_after(call.end)
    place = call.end + len(rest.rstrip()) if rest.lstrip().startswith("#") else call.end
    return Splice(place, place, f"{source.newline}{indent}{link}")


def _own_line(source: Source, call: LocatedCall) -> tuple[str | None, bool]:
    """(indent of a link on its own line, whether lines end in a backslash); (None, False) for a chain on one line."""
    if NEWLINE.search(call.dot_space):
        return NEWLINE.split(call.dot_space)[-1], "\\" in call.dot_space
    following = _NEXT_LINE.match(source.text, call.end)  # for the first call of a chain, follow the style of the next
    if following is None:
        return None, False
    return following["indent"], "\\" in following.group()


def link_span(source: Source, call: LocatedCall) -> tuple[int, int]:
    """Return the span to cut to remove a link: its own lines with their comment, or from the dot to the parenthesis.

    Args:
        source: The text of the file.
        call: A call of the form `dataset.method(...)`.

    Returns:
        (start, end) in characters.
    """
    assert call.link_start is not None
    dot = call.link_start + len(call.dot_space)
    before, rest = source.line_before(dot), source.line_after(call.end)
    has_lines = not before.strip() and NEWLINE.search(call.dot_space) is not None and "\\" not in call.dot_space
    if not has_lines:
        return call.link_start, call.end
    start = dot - len(before)
    if not rest.strip() or rest.lstrip().startswith("#"):
        line_break = NEWLINE.match(source.text, call.end + len(rest))
        return start, line_break.end() if line_break is not None else call.end + len(rest)
    # Text that follows on the last line, such as `)`, moves to the end of the line before.
    breaks = list(NEWLINE.finditer(source.text, call.link_start, dot))
    comment = "#" in source.text[call.link_start : dot]
    return (start, call.end) if comment else (breaks[-1].start(), call.end)


def check_link(call: LocatedCall) -> None:
    """Raise CannotRewriteError unless the call is `dataset.method(...)`."""
    if not call.form.is_link or call.link_start is None:
        raise CannotRewriteError(f"{call.method} is not called as a method of a dataset, so it cannot be removed.")


def remove(source: Source, call: LocatedCall) -> Splice:
    """Remove a call and replace it by its input.

    Raises:
        CannotRewriteError: The call has a form that cannot be removed.
    """
    if call.form.is_unbound:
        if len(call.arguments) < 1 or call.arguments[0].star or call.arguments[0].keyword:
            raise CannotRewriteError(f"It is unclear on which dataset {call.method} is called.")
        start, end = source.span(call.node)
        dataset = call.arguments[0]
        return Splice(start, end, source.text[dataset.start : dataset.end])
    check_link(call)
    line = self_assignment(source, call)
    return Splice(*source.line_span(line), "") if line is not None else Splice(*link_span(source, call), "")


def self_assignment(source: Source, call: LocatedCall) -> cst.SimpleStatementLine | None:
    """Return the line if it is `ds = ds.method(...)`, of which only `ds = ds` would remain without the call."""
    parents = source.parents(call.node)
    assign = parents[0]
    if not isinstance(assign, cst.Assign) or not isinstance(call.node.func, cst.Attribute) or len(assign.targets) != 1:
        return None
    target = get_full_name_for_node(assign.targets[0].target)
    receiver = call.node.func.value
    if (
        target is None
        or not isinstance(receiver, cst.Name | cst.Attribute)
        or get_full_name_for_node(receiver) != target
    ):
        return None
    return whole_line(parents[1], parents[2])


def condition_of(source: Source, call: LocatedCall) -> cst.If | None:
    """Return the `if` without `elif` and `else` whose only statement is the line `ds = ds.method(...)`; None if there is none."""
    parents = source.parents(call.node)
    if len(parents) < 5:
        return None
    assign, line, block, condition, outer = parents[:5]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or not isinstance(call.node.func, cst.Attribute):
        return None
    target = get_full_name_for_node(assign.targets[0].target)
    if target is None or target != get_full_name_for_node(call.node.func.value):
        return None
    is_alone = isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1
    is_only = isinstance(block, cst.IndentedBlock) and len(block.body) == 1
    if not is_alone or not is_only or not isinstance(condition, cst.If):
        return None
    return condition if condition.orelse is None and not isinstance(outer, cst.If) else None


def whole_line(statement: cst.CSTNode, block: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """Return the statement's line if it can be removed: it contains no other statement, and its block contains others."""
    is_alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    has_others = isinstance(block, cst.Module) or (isinstance(block, cst.IndentedBlock) and len(block.body) > 1)
    return statement if is_alone and has_others and isinstance(statement, cst.SimpleStatementLine) else None
