"""Breaks statements that a change made too long for their line, as Black does.

In: the text before and after a change.  Out: the text after the change; its syntax tree is the same. Only lines that the change
wrote are broken, and only calls that are all that the statement computes: `ds = ...`, `return ...`, `for batch in ...:`, or a
call that is a statement. Chains of calls get one call per line, arguments that do not fit one argument per line.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.rewrite.splices import lines_of

LINE_LENGTH = 88
"""Longest line that is never broken, in characters: Black's default. A file with longer ones keeps lines of that length."""
_REST = re.compile(r"\s*(#.*)?")
"""What may follow a broken statement in its line."""
_HEADER_REST = re.compile(r"\s*:\s*(#.*)?")


class _Value(NamedTuple):
    """A call that is all that the statement in a line computes; positions are in characters of that line."""

    line: int
    """Index of the line."""
    call: ast.Call
    start: int
    end: int
    is_statement: bool
    """Whether there is nothing else in the line: then a chain stays as it is, because Black puts no parentheses around it."""


def break_long_lines(before: str, after: str) -> str:
    """Return the text after a change, without changed lines that are longer than those of the file before.

    Args:
        before: The text before the change.
        after: The text after it, valid Python.
    """
    old, new = lines_of(before), lines_of(after)
    known = set(old)
    if not any(len(_body(line)) > LINE_LENGTH and line not in known for line in new):
        return after
    tree = ast.parse(after)
    limit = max([LINE_LENGTH, *(len(_body(old[value.line])) for value in _values(ast.parse(before), old))])
    unit = _indentation_unit(tree, new)
    lines = list(new)
    for value in _values(tree, new):
        line = new[value.line]
        if len(_body(line)) > limit and line not in known:
            newline = line[len(_body(line)) :]
            lines[value.line] = (newline or "\n").join(_Folding(_body(line), unit, limit).statement(value)) + newline
    broken = "".join(lines)
    return broken if broken == after or ast.dump(ast.parse(broken)) == ast.dump(tree) else after


def _values(tree: ast.Module, lines: Sequence[str]) -> Iterator[_Value]:
    """Yield the calls that are all that a statement in one line computes."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Expr(value=ast.Call() as call)
                | ast.Return(value=ast.Call() as call)
                | ast.Assign(value=ast.Call() as call)
                | ast.AnnAssign(value=ast.Call() as call)
            ):
                rest = _REST
            case ast.For(iter=ast.Call() as call):
                rest = _HEADER_REST
            case _:
                continue
        if not node.lineno == call.lineno == call.end_lineno or node.lineno > len(lines):
            continue
        line = _body(lines[node.lineno - 1])
        start, end = _span(line, call)
        if not line[: _characters(line, node.col_offset)].strip() and rest.fullmatch(line[end:]):
            yield _Value(node.lineno - 1, call, start, end, isinstance(node, ast.Expr))


class _Folding:
    """Breaks one line. What does not fit and cannot be broken stays too long."""

    def __init__(self, line: str, unit: str, limit: int) -> None:
        self._line, self._unit, self._limit = line, unit, limit

    def statement(self, value: _Value) -> list[str]:
        """Return the statement as several lines, a chain in parentheses."""
        line = self._line
        indent = line[: len(line) - len(line.lstrip())]
        head, tail = line[len(indent) : value.start], line[value.end :]
        if not self._dots(value.call):
            return self._link(head, value.call, tail, indent)
        if value.is_statement:
            return [line]
        return [f"{indent}{head}(", *self._chain("", value.call, "", indent + self._unit), f"{indent}){tail}"]

    def _folded(self, before: str, node: ast.expr, after: str, indent: str) -> list[str]:
        """Return an expression with the text before and after it."""
        start, end = _span(self._line, node)
        whole = [f"{indent}{before}{self._line[start:end]}{after}"]
        if len(whole[0]) <= self._limit:
            return whole
        match node:
            case ast.Lambda(body=body):
                first, last = _span(self._line, body)
                return self._folded(before + self._line[start:first], body, self._line[last:end] + after, indent)
            case ast.Call() if len(self._dots(node)) > 1:
                return self._chain(before, node, after, indent)
            case ast.Call():
                return self._link(before, node, after, indent)
            case _:
                return whole

    def _chain(self, before: str, call: ast.Call, after: str, indent: str) -> list[str]:
        """Return a chain of calls, one per line."""
        dots = self._dots(call)
        links = self._links(call)[-len(dots) :]
        start = _span(self._line, call)[0]
        lines = [indent + before + self._line[start : dots[0]].rstrip()]
        first = links[0].func
        if len(lines[0]) > self._limit and isinstance(first, ast.Attribute) and isinstance(first.value, ast.Call):
            lines = self._link(before, first.value, "", indent)
        for link, dot in zip(links, dots, strict=True):
            lines += self._link("", link, after if link is call else "", indent, dot)
        return lines

    def _link(self, before: str, call: ast.Call, after: str, indent: str, dot: int | None = None) -> list[str]:
        """Return a call, or the part of a chain that begins with a dot; whole if its arguments are not found."""
        start, end = _span(self._line, call)
        start = start if dot is None else dot
        whole = f"{indent}{before}{self._line[start:end]}{after}"
        arguments = self._arguments(call)
        if len(whole) <= self._limit or not arguments:
            return [whole]
        inner = indent + self._unit
        opening = self._line.index("(", _span(self._line, call.func)[1]) + 1
        joined = f"{inner}{self._line[opening : end - 1].strip().removesuffix(',')}"
        folded = [joined]
        if len(joined) > self._limit:
            comma = "," if len(arguments) > 1 else ""
            folded = [
                line for first, node, last in arguments for line in self._folded(first, node, last + comma, inner)
            ]
        return [f"{indent}{before}{self._line[start:opening]}", *folded, f"{indent}){after}"]

    def _arguments(self, call: ast.Call) -> list[tuple[str, ast.expr, str]]:
        """The arguments with what belongs to them before and after (`name=`, parentheses); empty if that is unclear."""
        line = self._line
        nodes: list[ast.expr | ast.keyword] = sorted([*call.args, *call.keywords], key=lambda node: node.col_offset)
        place = line.find("(", _span(line, call.func)[1]) + 1
        end = _span(line, call)[1] - 1
        found: list[tuple[str, ast.expr, str]] = []
        for node in nodes:
            first, last = _span(line, node)
            comma = re.compile(r"[\s)]*(,|$)").match(line, last, end)
            if first < place or comma is None or line[place:first].strip(" (\t"):
                return []
            value = node.value if isinstance(node, ast.keyword) else node
            begin, done = _span(line, value)
            found.append((line[place:begin].lstrip(), value, line[done : comma.start(1)].rstrip()))
            place = comma.end()
        return found

    def _links(self, call: ast.Call) -> list[ast.Call]:
        """The calls of a chain, first to last."""
        links: list[ast.Call] = []
        link: ast.expr = call
        while isinstance(link, ast.Call) and isinstance(link.func, ast.Attribute):
            links.append(link)
            link = link.func.value
        return links[::-1]

    def _dots(self, call: ast.Call) -> tuple[int, ...]:
        """Where the dots are before which a chain may be broken; empty if it is none, or one is not where it is expected."""
        places: list[int] = []
        links = self._links(call)
        for link in links:
            assert isinstance(link.func, ast.Attribute)
            head = self._line[: _span(self._line, link.func)[1]].removesuffix(link.func.attr).rstrip()
            if not head.endswith("."):
                return ()
            places.append(len(head) - 1)
        # `tf.data.Dataset.range(3)` stays in one line, but `dataset()` and `.map(f)` are two
        root = links[0].func.value if links and isinstance(links[0].func, ast.Attribute) else call
        return tuple(places[1:] if isinstance(root, ast.Name | ast.Attribute) else places)


def _indentation_unit(tree: ast.Module, lines: Sequence[str]) -> str:
    """Return by what most blocks are indented, four spaces if there are none."""
    units = Counter(
        lines[first.lineno - 1][node.col_offset : first.col_offset]
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for first in getattr(node, "body", [])[:1]
        if first.lineno > node.lineno
    )
    return max(units, key=units.__getitem__, default="    ")


def _span(line: str, node: ast.expr | ast.keyword) -> tuple[int, int]:
    """Return start and end of a node in its line, in characters."""
    return _characters(line, node.col_offset), _characters(line, node.end_col_offset)


def _characters(line: str, offset: int | None) -> int:
    """Return an offset in UTF-8, as in syntax trees, in characters."""
    return len(line.encode()[:offset].decode(errors="ignore"))


def _body(line: str) -> str:
    return line.rstrip("\r\n")
