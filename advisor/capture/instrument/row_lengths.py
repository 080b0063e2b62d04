"""Whether a function makes rows as long as a number of its element says, one value of them like the other.

In: the graph that TensorFlow traced of the function for one element.  Out: the component that is the length, or None.

Such a function can compute the rows of a whole batch at once, one after the other in a single vector: positions come from
`tf.ragged.range`, random numbers are drawn for all rows together, and element-wise ops take each value on its own. Cutting the
vector into rows of these lengths gives what the function makes of each element.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING
from advisor.model.catalog import ELEMENTWISE_OPS
from advisor.model.vectorizable_ops import DRAWING_OPS

_LENGTH, _NUMBER, _SIZE, _ROW = "length", "number", "size", "row"
"""The length itself, another scalar of the element, the shape of a row (a vector of the length alone), and a row."""


def row_length(graph: Any) -> int | None:  # noqa: ANN401
    """Return the component of the element that is the length of all rows that a function makes; None if there is none.

    Components are numbered as by `tf.nest.flatten`.

    Args:
        graph: The traced `FuncGraph`.
    """
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    components = graph.inputs[:count]
    if any(tensor.shape.rank != 0 for tensor in components):
        return None
    for number, tensor in enumerate(components):
        if tensor.dtype.is_integer and _makes_rows(graph, [component.op.name for component in components], number):
            return number
    return None


def _makes_rows(graph: Any, components: list[str], length: int) -> bool:  # noqa: ANN401
    """Whether the results are rows of this length, at least one of them, and scalars of the element."""
    kinds = dict.fromkeys(components, _NUMBER) | {components[length]: _LENGTH}
    for op in graph.get_operations():
        if op.name in components:
            continue
        moving = [kinds[tensor.op.name] for tensor in op.inputs if tensor.op.name in kinds]
        if not moving:
            if op.type in DRAWING_OPS:
                return False  # the rows of a batch would share these numbers
            continue
        kind = _kind(op, moving, kinds)
        if kind is None:
            return False
        kinds[op.name] = kind
    made = [kinds.get(tensor.op.name) for tensor in graph.outputs]
    return _ROW in made and all(kind in (_LENGTH, _NUMBER, _ROW) for kind in made)


def _kind(op: Any, moving: list[str], kinds: dict[str, str]) -> str | None:  # noqa: ANN401
    """What an op makes of its inputs; None if the values of a row may depend on each other or on other rows.

    Args:
        op: The op.
        moving: The kinds of those inputs that depend on the element.
        kinds: The kinds of all ops so far.
    """
    first, *others = (kinds.get(tensor.op.name) for tensor in op.inputs)
    are_others_scalars = all(kind is None for kind in others) and all(
        tensor.shape.rank == 0 for tensor in list(op.inputs)[1:]
    )
    if op.type in PLUMBING and len(op.inputs) == 1:
        return moving[0]
    if op.type == "Range":
        return _ROW if (first, *others) == (None, _LENGTH, None) and _counts_from_zero(op) else None
    if op.type == "Pack":
        return _SIZE if first == _LENGTH and not others and op.get_attr("axis") == 0 else None
    if op.type == "Shape":
        return _SIZE if first == _ROW else None
    if op.type in DRAWING_OPS or op.type == "Fill":
        return _ROW if first == _SIZE and are_others_scalars else None
    if op.type not in ELEMENTWISE_OPS:
        return None
    if set(moving) == {_ROW}:
        fixed = [tensor for tensor in op.inputs if tensor.op.name not in kinds]
        return _ROW if all(tensor.shape.rank == 0 for tensor in fixed) else None
    is_scalar = {_LENGTH, _NUMBER}.issuperset(moving) and all(tensor.shape.rank == 0 for tensor in op.inputs)
    return _NUMBER if is_scalar else None


def _counts_from_zero(op: Any) -> bool:  # noqa: ANN401
    import tensorflow as tf

    start, _, step = (tf.get_static_value(tensor) for tensor in op.inputs)
    return start is not None and step is not None and (int(start), int(step)) == (0, 1)
