"""Assigns the ops of a traced function to the lines of its body.

In: the graph that TensorFlow traced of the function of a transformation.  Out: `FunctionLine`s, from which
`advisor.splitting` chooses the line at which the function can be cut.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING
from advisor.capture.instrument.data_flow import nodes_inside
from advisor.model.calls import FunctionLine, Site

_MAX_LINES = 200
"""Functions that make ops in more places are not described, so that they do not inflate the recording."""
_WRAPPERS = frozenset(
    {"converted_call", "with_function_scope", "error_handler", "op_dispatch_handler", "wrapper", "<lambda>"}
)
"""Functions of TensorFlow between a line and the function that it calls."""
_OWN_FILES = str(Path(__file__).parent)
"""The wrappers that record calls are between a line and the methods of datasets."""
_LAMBDA_NAMES = (None, "None", "", "tf__lam")
"""Names that AutoGraph gives to the frame of a converted lambda."""


def function_lines(
    graph: Any,  # noqa: ANN401
    random_ops: Iterable[str],
    function: object,
    site: Site | None,
) -> tuple[FunctionLine, ...]:
    """Return what each line of a function's body does, in the order of execution; empty if that is unknown.

    Args:
        graph: The traced `FuncGraph`.
        random_ops: Types of ops that draw random numbers.
        function: The callable that the user passed to the transformation.
        site: Where the callable is defined; None if unknown.
    """
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if site is None or code is None:
        return ()
    if hasattr(function, "python_function"):
        graph = _graph_inside(graph)
    operations = list(graph.get_operations())
    bodies = {body.signature.name: body.node_def for body in graph.as_graph_def().library.function}
    wanted = frozenset(random_ops)
    places: dict[tuple[int, str], list[int]] = {}
    for number, op in enumerate(operations):
        place = _place(op, code.co_name, site)
        if place is not None:
            places.setdefault(place, []).append(number)
        elif not wanted.isdisjoint(node.op for node in nodes_inside(op.node_def, bodies)):
            return ()  # drawn by no line of the function
    if len(places) > _MAX_LINES:
        return ()
    lines = []
    for (line, called), numbers in places.items():
        counts = counted(node.op for number in numbers for node in nodes_inside(operations[number].node_def, bodies))
        size = _bytes_before(graph, operations, numbers[0])
        lines.append(FunctionLine(line, called, counts, not wanted.isdisjoint(counts), size))
    return tuple(lines)


def named_function(function: object, is_user_file: Callable[[str], bool]) -> FunctionType | None:
    """Return the function or method of the user's code that a lambda names, if it names only one.

    Args:
        function: The callable that the user passed to the transformation; anything but a lambda names none.
        is_user_file: Returns whether a file belongs to the user's code. The functions of other files than that of the lambda
            count only if it names none of its own.
    """
    if not isinstance(function, FunctionType) or function.__name__ != "<lambda>":
        return None
    code = function.__code__
    found = {id(value): value for value in values_named(function) if isinstance(value, FunctionType)}.values()
    own = [value for value in found if value.__code__.co_filename == code.co_filename]
    named_ones = own or [value for value in found if is_user_file(value.__code__.co_filename)]
    return named_ones[0] if len(named_ones) == 1 else None


def values_named(function: object) -> list[object]:
    """Return what the names in the body of a function stand for, in its module or around it, and the named attributes of those.

    Args:
        function: A Python function or method; of anything else, nothing is returned.
    """
    owner = [getattr(function, "__self__", None)]
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return []
    code = function.__code__
    named = {name: function.__globals__.get(name) for name in code.co_names}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # it has no value yet
            named[name] = cell.cell_contents
    values = list(named.values())
    return values + [inspect.getattr_static(value, name, None) for value in values + owner for name in code.co_names]


def site_of(code: CodeType) -> Site:
    """Return the lines of a function.

    Args:
        code: Its code object.
    """
    lines = [line for _, _, line in code.co_lines() if line is not None] or [code.co_firstlineno]
    return Site(code.co_filename, code.co_firstlineno, 1, max(lines), 1)


def _graph_inside(graph: Any) -> Any:  # noqa: ANN401
    """Return the graph of the only function that a graph calls, as that of a map with a `tf.function` does; else the graph."""
    calls = [op for op in graph.get_operations() if op.type in ("PartitionedCall", "StatefulPartitionedCall")]
    called = graph._get_function(calls[0].get_attr("f").name) if len(calls) == 1 else None
    return getattr(called, "graph", None) or graph


def _place(op: Any, name: str, site: Site) -> tuple[int, str] | None:  # noqa: ANN401
    """Return the line of the function's body that makes the op, and the name of the function that is called there.

    Ops that tf.data makes for arguments and results (of ragged tensors) belong to no line.
    """
    line = line_of(op, name, site)
    if line is None:
        return None
    frame = frame_of_call(op, name, site)
    return line, frame.name if frame is not None else ""


def line_of(op: Any, name: str, site: Site) -> int | None:  # noqa: ANN401
    """Return the line of a function's body that makes an op; None if no line does.

    Args:
        op: The op, with the stack at the time when it was made.
        name: Name of the function's code object.
        site: Where the function is defined.
    """
    frames = list(getattr(op, "traceback", ()))
    number = _own_frame(frames, name, site)
    return None if number is None else frames[number].lineno


def frame_of_call(op: Any, name: str, site: Site) -> Any:  # noqa: ANN401
    """Return the frame of the function that a line of a function's body calls to make an op; None if there is none.

    Args:
        op: The op.
        name: Name of the function's code object.
        site: Where the function is defined.
    """
    frames = list(getattr(op, "traceback", ()))
    number = _own_frame(frames, name, site)
    if number is None:
        return None
    own = frames[number]
    # AutoGraph calls the body of a lambda through a function of its own, so that its frame occurs twice.
    inner = (
        other
        for other in frames[number + 1 :]
        if other.name not in _WRAPPERS
        and not other.filename.startswith(_OWN_FILES)
        and (other.filename, other.name) != (own.filename, own.name)
    )
    return next(inner, None)


def _own_frame(frames: Sequence[Any], name: str, site: Site) -> int | None:
    """The first frame that is in the body of the function."""
    names = {name, *_LAMBDA_NAMES} if name == "<lambda>" else {name}
    for number, frame in enumerate(frames):
        if frame.filename == site.file and site.line <= frame.lineno <= site.end_line and frame.name in names:
            return number
    return None


def counted(types: Iterable[str]) -> dict[str, int]:
    """Return op type -> number of ops, without those that do not compute anything."""
    return dict(sorted(Counter(op for op in types if op not in PLUMBING).items()))


def _bytes_before(graph: Any, operations: Sequence[Any], first: int) -> int | None:  # noqa: ANN401
    """Return the size of the tensors made before the op at index `first` and used by it, by a later one, or as a result."""
    made = {op.name for op in operations[:first]}
    captured = {id(tensor) for tensor in graph.internal_captures}
    crossing = {
        tensor.name: tensor
        for tensor in (*(tensor for op in operations[first:] for tensor in op.inputs), *graph.outputs)
        if tensor.op.name in made and id(tensor) not in captured
    }
    sizes = [_bytes(tensor) for tensor in crossing.values() if tensor.op.type != "Const"]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def _bytes(tensor: Any) -> int | None:  # noqa: ANN401
    shape = tensor.shape.as_list() if tensor.shape.rank is not None else [None]
    size = tensor.dtype.size
    is_known = None not in shape and tensor.dtype.name not in ("string", "variant", "resource")
    return size * math.prod(shape) if is_known else None
