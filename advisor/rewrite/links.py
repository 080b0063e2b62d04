"""Links of a chain, written and taken out in the style of their neighbours: one line, a line each, backslashes, comments.

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
"""From the end of a call to the dot of the next link, which stands on a line of its own."""


def insert_link(source: Source, call: LocatedCall, link: str) -> Splice:
    """Put `.method(...)` behind a call, on its own line where the chain is written one call a line."""
    indent, has_backslash = _own_line(source, call)
    if indent is None:
        return Splice(call.end, call.end, link)
    if has_backslash:
        return Splice(call.end, call.end, f" \\{source.newline}{indent}{link}")
    rest = source.line_after(call.end)
    place = call.end + len(rest.rstrip()) if rest.lstrip().startswith("#") else call.end
    return Splice(place, place, f"{source.newline}{indent}{link}")


def _own_line(source: Source, call: LocatedCall) -> tuple[str | None, bool]:
    """(what stands before the dot of a link on its own line, whether lines end in a backslash); (None, ...): one line."""
    if NEWLINE.search(call.dot_space):
        return NEWLINE.split(call.dot_space)[-1], "\\" in call.dot_space
    following = _NEXT_LINE.match(source.text, call.end)  # the first of a chain: do as the next one does
    if following is None:
        return None, False
    return following["indent"], "\\" in following.group()


def link_span(source: Source, call: LocatedCall) -> tuple[int, int]:
    """What to cut so that a link is gone: its own lines with their comment if it has them, else from dot to parenthesis."""
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
    # Something follows on its last line (`)`): it stays where it is, behind the line before.
    breaks = list(NEWLINE.finditer(source.text, call.link_start, dot))
    comment = "#" in source.text[call.link_start : dot]
    return (start, call.end) if comment else (breaks[-1].start(), call.end)


def check_link(call: LocatedCall) -> None:
    """Raise CannotRewriteError unless the call is `dataset.method(...)`."""
    if not call.form.is_link or call.link_start is None:
        raise CannotRewriteError(f"{call.method} is not called on a dataset there, so it cannot be taken out.")


def remove(source: Source, call: LocatedCall) -> Splice:
    """Take a call out: its input takes its place."""
    if call.form.is_unbound:
        if len(call.arguments) < 1 or call.arguments[0].star or call.arguments[0].keyword:
            raise CannotRewriteError(f"Which dataset {call.method} is called on is not plain.")
        start, end = source.span(call.node)
        dataset = call.arguments[0]
        return Splice(start, end, source.text[dataset.start : dataset.end])
    check_link(call)
    line = self_assignment(source, call)
    return Splice(*source.line_span(line), "") if line is not None else Splice(*link_span(source, call), "")


def self_assignment(source: Source, call: LocatedCall) -> cst.SimpleStatementLine | None:
    """The line `ds = ds.method(...)` (or `self.ds = self.ds.method(...)`), of which nothing would be left but `ds = ds`."""
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


def whole_line(statement: cst.CSTNode, block: cst.CSTNode) -> cst.SimpleStatementLine | None:
    """The statement's line, if it can go: it holds nothing else, and its block more than it."""
    is_alone = isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1
    has_others = isinstance(block, cst.Module) or (isinstance(block, cst.IndentedBlock) and len(block.body) > 1)
    return statement if is_alone and has_others and isinstance(statement, cst.SimpleStatementLine) else None
