"""Finds the loops of the script around the place that iterates over a dataset, and how often they run.

In: the frame that iterates.  Out: `Loop`s, innermost first. No code of the script runs: only names, attributes that are stored in
an object, items and lengths of Python's own containers, and integers are read.
"""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import operator
from collections.abc import Callable, Iterator
from types import FrameType

from advisor.model.recording import Loop

MAX_SOURCE = 1_000_000
"""Longer source files, in characters, are not parsed."""
MAX_LOOPS = 10
_UNKNOWN = Loop(None)
_ONE_FOR_ONE = frozenset({"tqdm", "enumerate", "track", "reversed"})
_MAX_ITEMS = 1_000
"""Longer lists are not looked into: that would take time before every pass, and they are files or rows, not epochs."""
_NUMBERS = frozenset({int, float})
_SIZED = frozenset({list, tuple, dict, set, range})
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_Looping = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def enclosing_loops(frame: FrameType | None, owner_of: Callable[[str], str | None]) -> tuple[Loop, ...]:
    """Return the loops around the statement that a frame executes, and around the calls that led to it.

    Args:
        frame: The innermost frame.
        owner_of: Returns `user` for a file of the script, the name of an installed package, or None for the standard library
            and the advisor.

    Returns:
        The loops, innermost first. Where a package calls back into the script, or the script runs in a thread, there may be
        further loops: the last `Loop` is then one of unknown count.
    """
    loops: list[Loop] = []
    has_user_frame = is_called_back = False
    while frame is not None and len(loops) < MAX_LOOPS:
        owner = owner_of(frame.f_code.co_filename)
        if owner == "user":
            if is_called_back:
                break
            has_user_frame = True
            loops += _in_frame(frame)
            if frame.f_code.co_name == "<module>":
                return tuple(loops)
        elif owner is not None:
            is_called_back = has_user_frame
        frame = frame.f_back
    return (*loops, _UNKNOWN)


def _in_frame(frame: FrameType) -> Iterator[Loop]:
    """The loops of one function around its current line, innermost first."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    known = _loops_of_file(file)
    if known is None:
        yield _UNKNOWN
        return
    first = frame.f_code.co_firstlineno
    for loop in known:  # of two loops, the inner one starts later
        is_in_body = _body_start(loop) <= line <= (loop.end_lineno or loop.lineno)
        if is_in_body and (loop.lineno >= first or frame.f_code.co_name == "<module>"):
            yield Loop(_count(loop, frame), file, loop.lineno, loop.end_lineno or loop.lineno)


@functools.lru_cache(maxsize=64)
def _loops_of_file(file: str) -> tuple[_Looping, ...] | None:
    """All loops of a file, those that start last first; None if the file cannot be parsed."""
    source = "".join(linecache.getlines(file))
    if not source or len(source) > MAX_SOURCE:
        return None
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    loops = [node for node in ast.walk(tree) if isinstance(node, _Looping)]
    return tuple(sorted(loops, key=lambda node: (node.lineno, node.col_offset), reverse=True))


def _body_start(loop: _Looping) -> int:
    """The first line that runs more than once. The iterable of a `for` is evaluated once, before its body."""
    return loop.body[0].lineno if isinstance(loop, ast.For | ast.AsyncFor) else loop.lineno


def _count(loop: _Looping, frame: FrameType) -> int | None:
    if not isinstance(loop, ast.For):
        return None
    iterable = _unwrapped(loop.iter)
    bounds = _range_of(iterable)
    if bounds is None:
        return _numbers(iterable, frame)
    values = [_integer(bound, frame) for bound in bounds]
    if not 1 <= len(values) <= 3 or any(value is None for value in values):
        return None
    try:
        return len(range(*(value for value in values if value is not None)))
    except (ValueError, OverflowError):
        return None


def _unwrapped(iterable: ast.expr) -> ast.expr:
    """What `tqdm(...)`, `enumerate(...)` and the like pass on, one item for one."""
    while isinstance(iterable, ast.Call) and iterable.args and _name(iterable) in _ONE_FOR_ONE:
        iterable = iterable.args[0]
    return iterable


def _range_of(iterable: ast.expr) -> list[ast.expr] | None:
    """The arguments of `range` or `trange`; None for others."""
    if not isinstance(iterable, ast.Call) or not iterable.args:
        return None
    name = _name(iterable)
    return iterable.args if name == "trange" or (name == "range" and not iterable.keywords) else None


def _name(call: ast.Call) -> str:
    """The name of the called function, without its module."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _numbers(iterable: ast.expr, frame: FrameType) -> int | None:
    """The length of a list or tuple of numbers, as text or as a variable; None for everything else.

    A loop over anything else may read another dataset each time: `for split in ("train", "valid")`.
    """
    if isinstance(iterable, ast.List | ast.Tuple):
        are_numbers = all(isinstance(item, ast.Constant) and type(item.value) in _NUMBERS for item in iterable.elts)
        return len(iterable.elts) if are_numbers else None
    stored = _value(iterable, frame)
    if not isinstance(stored, list | tuple) or type(stored) not in _SIZED or len(stored) > _MAX_ITEMS:
        return None
    return len(stored) if all(type(item) in _NUMBERS for item in stored) else None


def _length(iterable: ast.expr, frame: FrameType) -> int | None:
    """The length of one of Python's own containers in a variable, unless it holds datasets."""
    stored = _value(iterable, frame)
    if not isinstance(stored, list | tuple | dict | set | range) or type(stored) not in _SIZED:
        return None  # also for a subclass, which may count otherwise
    if len(stored) > _MAX_ITEMS:
        return None
    items = stored.values() if isinstance(stored, dict) else stored
    is_of_datasets = any(inspect.getattr_static(type(item), "element_spec", None) is not None for item in items)
    return None if is_of_datasets else len(stored)


def _integer(expression: ast.expr, frame: FrameType) -> int | None:
    """The value of an expression made of integers, names, stored attributes, +, - and *; None if it is anything else."""
    match expression:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _integer(operand, frame)
            return None if value is None else -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            one, two = _integer(left, frame), _integer(right, frame)
            if one is None or two is None or (isinstance(op, ast.FloorDiv) and two == 0):
                return None
            return _OPERATORS[type(op)](one, two)
        case ast.Call(func=ast.Name(id="int"), args=[value], keywords=[]) if not _is_shadowed("int", frame):
            return _integer(value, frame)
        case ast.Call(func=ast.Name(id="len"), args=[value], keywords=[]) if not _is_shadowed("len", frame):
            return _length(value, frame)
    stored = _value(expression, frame)
    return stored if type(stored) is int else None


def _value(expression: ast.expr, frame: FrameType) -> object:
    """A constant, a variable or a stored attribute; properties and other descriptors are not called."""
    match expression:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name))
        case ast.Attribute(value=owner, attr=name):
            return inspect.getattr_static(_value(owner, frame), name, None)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            container = _value(owner, frame)
            is_keyed = type(container) is dict and type(key) is str
            return container.get(key) if is_keyed and isinstance(container, dict) else None
    return None


def _is_shadowed(name: str, frame: FrameType) -> bool:
    """Whether the script has a name of its own for a built-in function."""
    return name in frame.f_locals or name in frame.f_globals
