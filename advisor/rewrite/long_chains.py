"""Breaks chains of calls that a change made too long for their line: one call per line, as Black does.

In: the text before and after a change.  Out: the text after the change; its syntax tree is the same. Only lines that the change
wrote are broken, and only where the chain is all that the statement computes: `ds = ...`, `return ...`, `for batch in ...:`.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.rewrite.splices import lines_of

LINE_LENGTH = 88
"""Longest line that is never broken, in characters: Black's default. A file with longer chains keeps lines of that length."""
_REST = re.compile(r"\s*(#.*)?")
"""What may follow a broken statement in its line."""
_HEADER_REST = re.compile(r"\s*:\s*(#.*)?")


class _Chain(NamedTuple):
    """A chain of calls in one line; positions are in characters of that line."""

    line: int
    """Index of the line."""
    start: int
    end: int
    breaks: tuple[int, ...]
    """Positions of the dots before which a line begins."""


def break_long_chains(before: str, after: str) -> str:
    """Return the text after a change, without chains in changed lines that are longer than those of the file before.

    Args:
        before: The text before the change.
        after: The text after it, valid Python.
    """
    old, new = lines_of(before), lines_of(after)
    known = set(old)
    if not any(len(_body(line)) > LINE_LENGTH and line not in known for line in new):
        return after
    tree = ast.parse(after)
    longest = max([LINE_LENGTH, *(len(_body(old[chain.line])) for chain in _chains(ast.parse(before), old))])
    unit = _indentation_unit(tree, new)
    lines = list(new)
    for chain in _chains(tree, new):
        line = new[chain.line]
        if len(_body(line)) > longest and line not in known:
            lines[chain.line] = _broken(line, chain, unit)
    broken = "".join(lines)
    return broken if broken == after or ast.dump(ast.parse(broken)) == ast.dump(tree) else after


def _chains(tree: ast.Module, lines: Sequence[str]) -> Iterator[_Chain]:
    """Yield the chains of two or more calls that are all that a statement in one line computes."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Return(value=ast.Call() as value)
                | ast.Assign(value=ast.Call() as value)
                | ast.AnnAssign(value=ast.Call() as value)
            ):
                rest = _REST
            case ast.For(iter=ast.Call() as value):
                rest = _HEADER_REST
            case _:
                continue
        if not node.lineno == value.lineno == value.end_lineno or node.lineno > len(lines):
            continue
        line = _body(lines[node.lineno - 1])
        start, end = _characters(line, value.col_offset), _characters(line, value.end_col_offset)
        breaks = _breaks(line, value)
        is_alone = not line[: _characters(line, node.col_offset)].strip() and rest.fullmatch(line[end:])
        if breaks and is_alone:
            yield _Chain(node.lineno - 1, start, end, breaks)


def _breaks(line: str, call: ast.Call) -> tuple[int, ...]:
    """Return where the dots are before which the line may be broken; empty if one is not where it is expected."""
    places: list[int] = []
    link: ast.expr = call
    while isinstance(link, ast.Call) and isinstance(link.func, ast.Attribute):
        end = _characters(line, link.func.end_col_offset)
        head = line[:end].removesuffix(link.func.attr).rstrip()
        if not head.endswith("."):
            return ()
        places.append(len(head) - 1)
        link = link.func.value
    # `tf.data.Dataset.range(3)` stays in one line, but `dataset()` and `.map(f)` are two
    return tuple(reversed(places[:-1] if isinstance(link, ast.Name | ast.Attribute) else places))


def _broken(line: str, chain: _Chain, unit: str) -> str:
    """Return the line as several, in parentheses."""
    body = _body(line)
    newline = line[len(body) :] or "\n"
    indentation = body[: len(body) - len(body.lstrip())]
    ends = (*chain.breaks, chain.end)
    parts = [body[start:end].rstrip() for start, end in zip((chain.start, *chain.breaks), ends, strict=True)]
    inner = [f"{indentation}{unit}{part}" for part in parts]
    lines = [f"{body[: chain.start]}(", *inner, f"{indentation}){body[chain.end :]}"]
    return newline.join(lines) + line[len(body) :]


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


def _characters(line: str, offset: int | None) -> int:
    """Return an offset in UTF-8, as in syntax trees, in characters."""
    return len(line.encode()[:offset].decode(errors="ignore"))


def _body(line: str) -> str:
    return line.rstrip("\r\n")
