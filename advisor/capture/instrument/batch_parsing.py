"""Whether a function that parses records can be called with a batch of them, with `tf.io.parse_example` as its parser.

In: the graph that TensorFlow traced of the function for one record.  Out: yes or no. Yes means that the call gives what `batch`
or `padded_batch` makes of the results for single records.

A feature of varying length is padded: `tf.sparse.to_dense` fills a `VarLenFeature` up to the longest row of the batch, and
`tf.io.parse_example` a `FixedLenSequenceFeature`. That equals a `padded_batch` where both use the default padding and only ops
follow that keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING, ops_by_form, origin
from advisor.capture.instrument.padding_kept import is_padding

_PARSER = "ParseExampleV2"
"""The op of `tf.io.parse_example`, and of `tf.io.parse_single_example`, which passes a scalar to it."""
_FIRST_DEFAULT = 5
"""Number of the op's input that holds the default of its first dense feature."""
_SPARSE_PARTS = 3
"""A sparse tensor consists of indices, values and a shape; the op returns the indices of all features first, and so on."""
_KEEPING = frozenset({"Abs", "Cast", "Sqrt", "Square", "StringLower", "StringStrip", "StringUpper"})
"""Ops that make the default padding (0, False, the empty string) of the default padding, bit for bit."""
_PLAIN, _ROWS = "plain", "rows"
_Kind = str | tuple[str, int, int]
"""A value of fixed shape, a row of varying length, or (op, feature, part) of a sparse tensor."""


def parses_batches(
    graph: Any,  # noqa: ANN401
    alike: Set[str] = frozenset(),
    unlike: Set[str] = frozenset(),
) -> bool:
    """Return whether a function whose parser is exchanged does the same with a batch of records as with each of them.

    Args:
        graph: The traced `FuncGraph`.
        alike: As for `ops_by_form`.
        unlike: As for `ops_by_form`.
    """
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    components = {tensor.op.name for tensor in graph.inputs[:count]}
    kinds: dict[str, _Kind] = {tensor.name: _PLAIN for tensor in graph.inputs[:count]}
    operations, known = list(graph.get_operations()), set(alike)
    for op in operations:
        if op.name in components or not any(tensor.name in kinds for tensor in op.inputs):
            continue
        made = _made(op, kinds)
        if made is None:
            return False
        if op.type == _PARSER or any(kinds.get(tensor.name, _PLAIN) != _PLAIN for tensor in op.inputs):
            known.add(op.name)
        kinds.update(zip((tensor.name for tensor in op.outputs), made, strict=True))
    results = [(kinds.get(tensor.name), tensor.shape.is_fully_defined()) for tensor in graph.outputs]
    if not all(kind == _ROWS or (kind == _PLAIN and is_closed) for kind, is_closed in results):
        return False
    return not ops_by_form(operations, components, known, unlike)[1]


def _made(op: Any, kinds: Mapping[str, _Kind]) -> list[_Kind] | None:  # noqa: ANN401
    """What the results of an op are; None if they may be something else for a batch."""
    moving = [tensor for tensor in op.inputs if tensor.name in kinds]
    its_kinds = {kinds[tensor.name] for tensor in moving}
    if op.type == _PARSER:
        is_record = len(moving) == 1 and its_kinds == {_PLAIN} and op.inputs[0].name == moving[0].name
        return _parsed(op) if is_record and moving[0].shape.rank == 0 else None
    if its_kinds == {_PLAIN}:
        return [_PLAIN] * len(op.outputs)
    if op.type == "SparseToDense":
        return [_ROWS] if _fills_up(op, kinds) else None
    if len(op.inputs) == 1 and (op.type in PLUMBING or (op.type in _KEEPING and its_kinds == {_ROWS})):
        return [kinds[moving[0].name]]
    return None


def _parsed(op: Any) -> list[_Kind] | None:  # noqa: ANN401
    """The results of a parser; None if a dense one of varying length is padded with something else, or if one is ragged."""
    if op.get_attr("ragged_value_types") or op.get_attr("ragged_split_types"):
        return None
    sparse = op.get_attr("num_sparse")
    made: list[_Kind] = [(op.name, number, part) for part in range(_SPARSE_PARTS) for number in range(sparse)]
    for number, tensor in enumerate(list(op.outputs)[len(made) :]):
        if tensor.shape.is_fully_defined():
            made.append(_PLAIN)
        elif tensor.shape.rank and tensor.shape[1:].is_fully_defined() and _pads(op.inputs[_FIRST_DEFAULT + number]):
            made.append(_ROWS)
        else:
            return None
    return made


def _fills_up(op: Any, kinds: Mapping[str, _Kind]) -> bool:  # noqa: ANN401
    """Whether a `SparseToDense` gets the three parts of one feature, and the default padding."""
    indices, shape, values, default = op.inputs
    parts = [kinds.get(tensor.name) for tensor in (indices, values, shape)]
    first = parts[0]
    return (
        isinstance(first, tuple)
        and parts == [(first[0], first[1], part) for part in range(_SPARSE_PARTS)]
        and default.name not in kinds
        and _pads(default)
    )


def _pads(tensor: Any) -> bool:  # noqa: ANN401
    """Whether a tensor is a constant that consists of the default padding."""
    import numpy as np
    import tensorflow as tf

    made = origin(tensor)
    while made.type == "Reshape":
        made = origin(made.inputs[0])
    value = tf.get_static_value(made.outputs[0])
    return value is not None and is_padding(np.asarray(value))
