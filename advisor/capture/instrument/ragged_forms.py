"""Whether a function that splits texts into words can be called with a batch of texts, so that its results are ragged tensors.

In: the graph that TensorFlow traced of the function for one element.  Out: the components of the result that become ragged.
`tf.strings.split` makes a vector of the words of one text, and a ragged tensor of those of a batch; TensorFlow's element-wise ops
and look-ups take ragged tensors, and so do the same for each word.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING, origin
from advisor.model.catalog import ELEMENTWISE_OPS

_SPLIT = ("ragged_string_ops.py", "string_split_v2")
"""File and name of the function that is exported as `tf.strings.split`."""
_PLAIN, _WORDS = "plain", "words"


def ragged_results(graph: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Return the components of a function's result that are ragged if it is called with a batch; empty if it must not be.

    Components are numbered as by `tf.nest.flatten`. The function may split scalar texts, and apply element-wise ops and look-ups
    to the words, to the texts before, and to other components.

    Args:
        graph: The traced `FuncGraph`.
    """
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    kinds: dict[str, str] = dict.fromkeys((tensor.op.name for tensor in graph.inputs[:count]), _PLAIN)
    operations = list(graph.get_operations())
    splitting = {op.name for op in operations if _is_in_split(op)}
    if not splitting:
        return ()
    for op in operations:
        moving = [tensor for tensor in op.inputs if tensor.op.name in kinds]
        if op.name in kinds or not moving:
            continue
        kind = _kind(op, moving, kinds, splitting)
        if kind is None:
            return ()
        kinds[op.name] = kind
    made = [kinds.get(origin(tensor).name) for tensor in graph.outputs]
    if None in made or any(origin(tensor).name in splitting and not _is_words(tensor) for tensor in graph.outputs):
        return ()
    return tuple(number for number, kind in enumerate(made) if kind == _WORDS)


def _kind(op: Any, moving: list[Any], kinds: dict[str, str], splitting: set[str]) -> str | None:  # noqa: ANN401
    """What the op makes of its inputs, words or another value; None if that may be something else for a batch."""
    if op.name in splitting:
        outer = [tensor for tensor in moving if tensor.op.name not in splitting]
        return _WORDS if all(tensor.shape.rank == 0 and kinds[tensor.op.name] == _PLAIN for tensor in outer) else None
    if any(tensor.op.name in splitting and not _is_words(tensor) for tensor in moving):
        return None
    ranks = {tensor.shape.rank for tensor in moving}
    its_kinds = {kinds[tensor.op.name] for tensor in moving}
    if len(its_kinds) > 1 or len(ranks) > 1 or None in ranks:
        return None
    if op.type in PLUMBING:
        return its_kinds.pop()
    if op.type not in ELEMENTWISE_OPS or any(tensor.shape.rank is None for tensor in (*op.inputs, *op.outputs)):
        return None
    most = 0 if _WORDS in its_kinds else max(ranks)
    if any(tensor.shape.rank > most for tensor in op.inputs if tensor.op.name not in kinds):
        return None  # broadcast against a constant
    return its_kinds.pop()


def _is_in_split(op: Any) -> bool:  # noqa: ANN401
    frames = getattr(op, "traceback", ())
    return any(frame.name == _SPLIT[1] and frame.filename.endswith(_SPLIT[0]) for frame in frames)


def _is_words(tensor: Any) -> bool:  # noqa: ANN401
    """Whether a tensor is the result of `tf.strings.split`, and not one of the numbers that it computes on the way."""
    made = origin(tensor)
    return bool(made.type == "StridedSlice" and tensor.shape.rank == 1 and tensor.dtype.name == "string")
