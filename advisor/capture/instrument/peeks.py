"""Tells a look at the first element of a dataset from a loop over it, by the text of the script.

In: the frame that begins to read a dataset.  Out: the place, if its text takes one element and goes on.

A script often prints the shape of a batch before it trains. Two forms are looks whatever runs later: the iterator is made
inside `next(...)`, or the body of the `for` ends with `break` or `return`.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Callable
from types import FrameType

from advisor.capture.instrument.call_sites import GET_ITER
from advisor.capture.instrument.enclosing_loops import MAX_SOURCE

_TAKERS = frozenset({"get_next", "next", "__next__"})


def peek_at(frame: FrameType | None, owner_of: Callable[[str], str | None]) -> tuple[str, int] | None:
    """Return the place of a look at the first element.

    Args:
        frame: The innermost frame.
        owner_of: Returns `user` for a file of the script, the name of an installed package, or None for the standard library
            and the advisor.

    Returns:
        File and line; None if this is a loop, or a library reads the dataset.
    """
    while frame is not None and (owner := owner_of(frame.f_code.co_filename)) != "user":
        if owner not in (None, "tensorflow"):
            return None
        frame = frame.f_back
    if frame is None:
        return None
    code, lasti = frame.f_code, frame.f_lasti
    line, end_line, _, end_column = next(itertools.islice(code.co_positions(), lasti // 2, None))
    file = code.co_filename
    loops, takers = _syntax(file)
    if line is None or end_line is None or end_column is None:
        return None
    if code.co_code[lasti] == GET_ITER:
        ends = [is_one for first, last, is_one in loops if first <= line <= last]
        is_peek = bool(ends) and all(ends)
    else:
        is_peek = (end_line, end_column) in takers
    return (file, line) if is_peek else None


_Loops = tuple[tuple[int, int, bool], ...]
"""(first line of the iterated expression, last line, whether the body ends the loop) of each `for`."""


@functools.lru_cache(maxsize=64)
def _syntax(file: str) -> tuple[_Loops, frozenset[tuple[int, int]]]:
    """The loops of a file, and the ends (line, column) of the expressions of which one element is taken at once."""
    source = "".join(linecache.getlines(file))
    try:
        tree = ast.parse(source if len(source) <= MAX_SOURCE else "")
    except (SyntaxError, ValueError, RecursionError):
        return (), frozenset()
    loops, takers = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For):
            first, last = node.iter.lineno, node.iter.end_lineno or node.iter.lineno
            loops.append((first, last, isinstance(node.body[-1], ast.Break | ast.Return)))
        elif isinstance(node, ast.Call) and (taken := _taken(node)) is not None:
            takers.add((taken.end_lineno or 0, taken.end_col_offset or 0))
    return tuple(loops), frozenset(takers)


def _taken(call: ast.Call) -> ast.expr | None:
    """The iterator of which this call takes one element; None if it is another call."""
    match call.func:
        case ast.Name(id="next") if call.args and isinstance(call.args[0], ast.Call):
            return call.args[0]
        case ast.Attribute(value=ast.Call() as made, attr=name) if name in _TAKERS:
            return made
    return None
