"""Whether a function can be called with a batch as it is, judged by the graph that TensorFlow traced of it for one element.

In: the ops of the graph.  Out: yes or no. Yes means that all results have the same values if every tensor that depends on the
element gets one more dimension in front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from advisor.model.catalog import ELEMENT_SPLITTING_OPS, ELEMENTWISE_OPS

PLUMBING = frozenset({"Placeholder", "_Arg", "_Retval", "NoOp", "Const", "Identity", "IdentityN"})
"""Ops that do not compute anything."""
_PIXELS = 3
"""Dimensions of an image: `tf.image.resize` adds one in front and removes it, and takes batches of images as they are."""


def takes_batches(
    graph: Any,  # noqa: ANN401
    operations: Iterable[Any],
    components: Mapping[str, int],
    alike: Set[str] = frozenset(),
    unlike: Set[str] = frozenset(),
) -> bool:
    """Return whether calling the function on a batch of elements gives the same result as batching its results.

    Args:
        graph: The traced `FuncGraph`.
        operations: Its ops in topological order.
        components: Names of the ops that stand for the components of the element.
        alike: As for `ops_by_form`.
        unlike: As for `ops_by_form`.
    """
    varying, others = ops_by_form(operations, components, alike, unlike)
    return not others and bool(components) and all(origin(tensor).name in varying for tensor in graph.outputs)


def ops_by_form(
    operations: Iterable[Any],
    components: Iterable[str],
    alike: Set[str] = frozenset(),
    unlike: Set[str] = frozenset(),
) -> tuple[set[str], set[str]]:
    """Return the names of the ops that depend on the element, and of those among them that treat a batch otherwise.

    Args:
        operations: The ops of a function in topological order.
        components: Names of the ops that stand for the components of the element.
        alike: Names of ops that treat a batch like each of its elements, whatever their types (`batch_layers`).
        unlike: Names of ops that do not.
    """
    varying, others = set(components), set[str]()
    for op in operations:
        moving = [tensor for tensor in op.inputs if tensor.op.name in varying]
        if op.name not in varying and not moving:
            continue
        varying.add(op.name)
        if op.name in alike or (op.type in PLUMBING and op.name not in unlike):
            continue
        if op.name in unlike or any(tensor.shape.rank is None for tensor in (*op.inputs, *op.outputs)):
            others.add(op.name)
            continue
        if op.type in ELEMENTWISE_OPS or op.type in ELEMENT_SPLITTING_OPS:
            is_same = _meets_equals(op, moving)
        else:
            is_same = op.type in _FORMS and _FORMS[op.type](op, varying)
        if not is_same:
            others.add(op.name)
    return varying, others


def origin(tensor: Any) -> Any:  # noqa: ANN401
    """Return the op that computes a tensor, skipping `Identity` ops."""
    op, seen = tensor.op, 0
    while op.type == "Identity" and len(op.inputs) == 1 and seen < 100:
        op, seen = op.inputs[0].op, seen + 1
    return op


def _meets_equals(op: Any, moving: list[Any]) -> bool:  # noqa: ANN401
    """Whether no broadcasting depends on the number of dimensions.

    Tensors that depend on the element must have the same rank, so that one more dimension affects them alike, and constants no
    higher one.
    """
    ranks = {tensor.shape.rank for tensor in moving}
    return len(ranks) == 1 and all(tensor.shape.rank <= max(ranks) for tensor in op.inputs)


def _varies(op: Any, varying: Set[str]) -> tuple[bool, ...]:  # noqa: ANN401
    """For each input, whether it depends on the element."""
    return tuple(tensor.op.name in varying for tensor in op.inputs)


def _only_first(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.strings.substr` with a fixed position and length, `tf.strings.regex_replace` with a fixed pattern."""
    first, *others = _varies(op, varying)
    return first and not any(others) and all(tensor.shape.rank == 0 for tensor in list(op.inputs)[1:])


def _decode_csv(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.io.decode_csv` with fixed defaults: each column has the shape of the records."""
    first, *others = _varies(op, varying)
    return first and not any(others)


def _one_hot(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.one_hot` in a new last dimension."""
    return op.get_attr("axis") == -1 and _only_first(op, varying)


def _gather(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.gather(constant, element)`: rows of a table."""
    return _varies(op, varying) == (False, True, False) and op.get_attr("batch_dims") == 0 and _value(op.inputs[2]) == 0


def _expand(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.expand_dims(x, -1)`, or the first half of what `tf.image.resize` does with one image."""
    if _varies(op, varying) != (True, False):
        return False
    axis = _value(op.inputs[1])
    return axis is not None and (axis < 0 or _is_for_resize(op, axis))


def _is_for_resize(op: Any, axis: int) -> bool:  # noqa: ANN401
    users = op.outputs[0].consumers()
    return axis == 0 and op.inputs[0].shape.rank == _PIXELS and all(user.type in _RESIZING for user in users)


def _squeeze(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """The second half of what `tf.image.resize` does with one image."""
    return list(op.get_attr("squeeze_dims")) == [0] and op.inputs[0].op.type in _RESIZING


def _resize(op: Any, varying: Set[str]) -> bool:  # noqa: ANN401
    """`tf.image.resize` of one image to a fixed size."""
    first, *others = _varies(op, varying)
    users = op.outputs[0].consumers()
    is_one_image = op.inputs[0].op.type == "ExpandDims" and all(user.type == "Squeeze" for user in users)
    return first and not any(others) and is_one_image


def _value(tensor: Any) -> int | None:  # noqa: ANN401
    """The value of a constant; None if it is not one."""
    import tensorflow as tf

    value = tf.get_static_value(tensor)
    return None if value is None or value.size != 1 else int(value)


_RESIZING = frozenset({"ResizeArea", "ResizeBicubic", "ResizeBilinear", "ResizeNearestNeighbor", "ScaleAndTranslate"})
_FORMS: Mapping[str, Callable[[Any, Set[str]], bool]] = {
    "DecodeCSV": _decode_csv,
    "ExpandDims": _expand,
    "GatherV2": _gather,
    "OneHot": _one_hot,
    "RegexFullMatch": _only_first,
    "RegexReplace": _only_first,
    "Squeeze": _squeeze,
    "Substr": _only_first,
    **dict.fromkeys(_RESIZING, _resize),
}
"""Op type of `catalog.BATCH_FORM_OPS` -> whether this use of it treats a batch like each of its elements."""
