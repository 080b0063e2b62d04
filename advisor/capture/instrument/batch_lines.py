"""Says of each line of a traced function what it does to a batch.

In: the graph that TensorFlow traced of the function of a transformation.  Out: `BatchLine`s, from which `advisor.splitting` puts
together a function of batches: lines that take batches as they are, and others that `tf.vectorized_map` converts.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING, ops_by_form, origin
from advisor.capture.instrument.data_flow import nodes_inside
from advisor.capture.instrument.function_lines import counted, frame_of_call, line_of
from advisor.model.calls import BatchLine, Site
from advisor.model.catalog import ELEMENT_SPLITTING_OPS, ELEMENTWISE_OPS, PYTHON_OPS, TABLE_SIZE_OPS
from advisor.model.vectorizable_ops import DRAWING_OPS, LOOP_INVARIANT_OPS, VECTORIZABLE_OPS

_MAX_LINES = 200
"""Functions that make ops in more places are not described, so that they do not inflate the recording."""
_MAX_OPS = 5_000
"""Functions with more ops are not described: a model inside a function is not put together from its lines."""
_OPERATORS = frozenset({"binary_op_wrapper", "r_binary_op_wrapper", "_slice_helper", "_check_index"})
"""Functions of TensorFlow that operators of Python call."""

_SHAPING = frozenset({"EnsureShape", "Reshape"})
"""Ops that fail unless their input has as many values as their result, if that has a fixed shape."""


def batch_lines(
    graph: Any,  # noqa: ANN401
    function: object,
    site: Site | None,
    alike: Set[str] = frozenset(),
    unlike: Set[str] = frozenset(),
) -> tuple[BatchLine, ...]:
    """Return what each line of a function's body does to a batch, in the order of execution; empty if that is of no use.

    That is so if all of its ops can be vectorised, if an op was made by no line, if a line uses a constant of another one, which
    would have no row for each element, or if rows of bytes may have several lengths.

    Args:
        graph: The traced `FuncGraph`.
        function: The callable that the user passed to the transformation.
        site: Where the callable is defined; None if unknown.
        alike: As for `ops_by_form`.
        unlike: As for `ops_by_form`.
    """
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    operations = list(graph.get_operations())
    if site is None or code is None or len(operations) > _MAX_OPS or inspect.unwrap(function) is not function:  # type: ignore[arg-type]
        return ()
    bodies = {body.signature.name: body.node_def for body in graph.as_graph_def().library.function}
    if not _is_mixed(operations, bodies, alike):
        return ()
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    # What an op with state returns belongs to its element, as if it depended on it: random numbers, above all.
    not_drawing = ELEMENTWISE_OPS | TABLE_SIZE_OPS
    stateful = {op.name for op in operations if op.op_def.is_stateful and op.type not in not_drawing}
    varying, others = ops_by_form(
        operations, stateful.union(tensor.op.name for tensor in graph.inputs[:count]), alike, unlike
    )
    if not all(origin(tensor).name in varying for tensor in graph.outputs):
        return ()
    if any(_may_differ_in_length(op) for op in operations if op.type in ELEMENT_SPLITTING_OPS and op.name not in alike):
        return ()
    places: dict[str, tuple[int, str] | None] = {op.name: _place(op, code.co_name, site) for op in operations}
    made: dict[tuple[int, str], list[Any]] = {}
    constant_lines = set[int]()
    for op in operations:
        if op.type in PLUMBING:
            continue
        place = places[op.name]
        if place is None:
            return ()
        for maker in (origin(tensor) for tensor in op.inputs):
            used = places.get(maker.name)
            if maker.name in varying or used in (None, place):
                continue
            if used[0] != place[0]:
                return ()
            constant_lines.add(place[0])
        made.setdefault(place, []).append(op)
    if len(made) > _MAX_LINES:
        return ()
    return tuple(
        BatchLine(
            line=place[0],
            called=place[1],
            ops=counted(node.op for op in ops for node in nodes_inside(op.node_def, bodies)),
            takes_batches=not any(op.name in others for op in ops),
            has_constants=place[0] in constant_lines,
        )
        for place, ops in made.items()
    )


def _is_mixed(operations: Iterable[Any], bodies: Mapping[str, Any], alike: Set[str]) -> bool:
    """Whether some op has no converter, and none runs Python code that may treat a batch otherwise than each of its elements."""
    known = VECTORIZABLE_OPS | LOOP_INVARIANT_OPS | DRAWING_OPS | PLUMBING
    nodes = [(op, node) for op in operations for node in nodes_inside(op.node_def, bodies)]
    is_unknown = any(node.op in PYTHON_OPS and op.name not in alike for op, node in nodes)
    return not known.issuperset(node.op for _, node in nodes) and not is_unknown


def _may_differ_in_length(op: Any) -> bool:  # noqa: ANN401
    """Whether rows of bytes, which must be equally long in a batch, go through more than element-wise ops and a fixed shape."""
    pending, seen = [op], set[str]()
    while pending:
        current = pending.pop()
        is_fixed = all(tensor.shape.is_fully_defined() for tensor in current.outputs)
        if current is not op and current.type not in ELEMENTWISE_OPS | PLUMBING | _SHAPING:
            return True
        if current.name not in seen and not is_fixed:
            seen.add(current.name)
            pending += [user for tensor in current.outputs for user in tensor.consumers()]
    return False


def _place(op: Any, name: str, site: Site) -> tuple[int, str] | None:  # noqa: ANN401
    """The line that makes an op, and the public name of the function that it calls; the name is empty for an operator."""
    line = line_of(op, name, site)
    if line is None:
        return None
    frame = frame_of_call(op, name, site)
    if frame is None or frame.name in _OPERATORS:
        return line, ""
    return line, _public_name(frame.filename, frame.name)


@functools.lru_cache(maxsize=1024)
def _public_name(file: str, name: str) -> str:
    """The name under which TensorFlow exports a function (`resize` for `resize_images_v2`); its own name if it does not."""
    module = next((module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file), None)
    function = getattr(module, name, None)
    # A private attribute; without it, the function keeps its own name.
    exported = getattr(inspect.unwrap(function), "_tf_api_names", ()) if callable(function) else ()
    return exported[0].rpartition(".")[2] if exported else name
