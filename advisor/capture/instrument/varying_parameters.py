"""Finds ops that `tf.vectorized_map` cannot convert because of how a function uses them.

In: the graph that TensorFlow traced of the function for one element.  Out: the types of ops of which an input differs from
element to element that must be the same for all. TensorFlow raises an error when such a function is vectorised.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from advisor.model.vectorizable_ops import INVARIANT_INPUTS, SHAPE_OPS


def varying_parameters(
    operations: Iterable[Any], components: Collection[str], drawing: Collection[str]
) -> tuple[str, ...]:
    """Return the op types in alphabetical order; empty if every use of an op can be converted, as far as is known.

    Functions that the function calls are not examined: an op that calls one varies if an input does, or if it is among `drawing`.

    Args:
        operations: The ops in topological order, as graphs list them.
        components: Names of the ops that stand for the components of the element.
        drawing: Names of the ops that draw a random number, themselves or in a function that they call.
    """
    varying = set(components)
    found: set[str] = set()
    for op in operations:
        differs = [tensor.op.name in varying for tensor in op.inputs]
        if any(differs[INVARIANT_INPUTS.get(op.type, slice(0))]):
            found.add(op.type)
        if op.name in drawing or (any(differs) and op.type not in SHAPE_OPS):
            varying.add(op.name)
    return tuple(sorted(found))
