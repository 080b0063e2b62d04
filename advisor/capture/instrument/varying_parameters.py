"""Finds ops that `tf.vectorized_map` cannot convert because of how a function uses them.

In: the graph that TensorFlow traced of the function for one element.  Out: the types of ops of which an input differs from
element to element that must be the same for all. TensorFlow raises an error when such a function is vectorised.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.capture.instrument.data_flow import calls_any
from advisor.model.vectorizable_ops import INVARIANT_INPUTS, SHAPE_OPS


def varying_parameters(graph: Any, random_ops: Iterable[str]) -> tuple[str, ...]:  # noqa: ANN401
    """Return the op types in alphabetical order; empty if every use of an op can be converted, as far as is known.

    Functions that the function calls are not examined: an op that calls one varies if an input does, or if a random number is
    drawn inside.

    Args:
        graph: The traced `FuncGraph`.
        random_ops: Types of ops that draw random numbers.
    """
    bodies = {body.signature.name: body.node_def for body in graph.as_graph_def().library.function}
    drawing = frozenset(random_ops)
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    varying = {tensor.op.name for tensor in graph.inputs[:count]}
    found: set[str] = set()
    for op in graph.get_operations():  # in topological order
        differs = [tensor.op.name in varying for tensor in op.inputs]
        if any(differs[INVARIANT_INPUTS.get(op.type, slice(0))]):
            found.add(op.type)
        if calls_any(op.node_def, bodies, drawing) or (any(differs) and op.type not in SHAPE_OPS):
            varying.add(op.name)
    return tuple(sorted(found))
