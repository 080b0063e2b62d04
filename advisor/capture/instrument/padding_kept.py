"""Whether an element-wise function maps padding to padding, so that it may be applied after a `padded_batch`.

In: the function that TensorFlow traced for one element.  Out: yes, no, or None if it does not follow from the graph.

Padding fills dimensions of unknown size with 0, False or the empty string. A result in such a dimension must come from a single
component of the element, one value from one value; then a call with padding alone shows what becomes of padding anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING
from advisor.model.catalog import ELEMENTWISE_OPS

_FILLED = 2
"""Size given to a dimension of unknown size for the call: any size shows the same."""


def keeps_padding(function: Any, ops: Iterable[str]) -> bool | None:  # noqa: ANN401
    """Return whether the default padding becomes the default padding, bit for bit.

    Args:
        function: The traced `ConcreteFunction` of an element-wise function without state.
        ops: Types of all its ops, nested functions included.
    """
    import tensorflow as tf

    graph = function.graph
    if not (ELEMENTWISE_OPS | PLUMBING).issuperset(ops) or graph.captures or not graph.inputs:
        return None
    if all(_is_closed(tensor) for tensor in graph.inputs) or not _comes_from_one(graph):
        return None
    with tf.init_scope():
        if not tf.executing_eagerly():
            return None
        with tf.device("CPU:0"):
            results = tf.nest.flatten(function(*(_padding(tensor, tf) for tensor in graph.inputs)))
    # No ops from here on: where the function is inside another one, they would be added to the graph of that.
    return all(
        _is_closed(traced) or is_padding(value.numpy()) for traced, value in zip(graph.outputs, results, strict=True)
    )


def _comes_from_one(graph: Any) -> bool:  # noqa: ANN401
    """Whether each value in a dimension of unknown size is computed from the values of one component at the same place.

    Two components could have other sizes in other elements, and a constant that is not a scalar could be as long as some of them.
    """
    sources: dict[str, frozenset[str]] = {tensor.op.name: frozenset({tensor.op.name}) for tensor in graph.inputs}
    for op in graph.get_operations():
        if op.name in sources:
            continue
        own = frozenset(name for tensor in op.inputs for name in sources.get(tensor.op.name, ()))
        sources[op.name] = own
        if not own or all(_is_closed(tensor) for tensor in op.outputs):
            continue
        if len(own) > 1 or not all(_fits(tensor, op.outputs[0], sources) for tensor in op.inputs):
            return False
    return True


def _fits(tensor: Any, result: Any, sources: dict[str, frozenset[str]]) -> bool:  # noqa: ANN401
    """Whether an operand has the shape of the result, or is a constant that says the same for all unknown dimensions."""
    if tensor.shape.rank is None or result.shape.rank is None:
        return False
    if sources.get(tensor.op.name):
        return bool(tensor.shape.as_list() == result.shape.as_list())
    sizes = result.shape.as_list()[result.shape.rank - tensor.shape.rank :] if tensor.shape.rank else []
    return tensor.shape.rank <= result.shape.rank and all(
        size == 1 or wanted is not None for size, wanted in zip(tensor.shape.as_list(), sizes, strict=True)
    )


def _is_closed(tensor: Any) -> bool:  # noqa: ANN401
    """Whether every dimension has a known size."""
    return bool(tensor.shape.is_fully_defined())


def _padding(tensor: Any, tensorflow: Any) -> Any:  # noqa: ANN401
    """Return padding with the type and the known dimensions of an argument: zeros, which are empty strings among strings."""
    return tensorflow.zeros([_FILLED if size is None else size for size in tensor.shape.as_list()], tensor.dtype)


def is_padding(array: Any) -> bool:  # noqa: ANN401
    """Return whether all values of a NumPy array are the default padding, bit for bit: -0.0 is not 0.0."""
    return not any(array.ravel().tolist()) if array.dtype == object else not any(array.tobytes())
