"""Analyzes the data flow in a traced function: connected ops, dependence on random numbers, components passed through.

In: the graph that TensorFlow traced of the function of a transformation.  Out: `Dataflow`.

Components of an element are numbered in the order of `tf.nest.flatten`. An op that calls a nested function (`If`, `While`,
`PartitionedCall`) counts as a single op with the effects of the function's body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from advisor.capture.instrument.batch_forms import PLUMBING, origin, takes_batches
from advisor.capture.instrument.varying_parameters import varying_parameters
from advisor.model.calls import Site

_MAX_FLOW = 200
"""Maximum number of recorded pairs of op types, so that a model inside a function does not inflate the recording."""


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Data flow in the graph of a function."""

    is_elementwise: bool
    """Whether calling the function on a batch of elements gives the same result as batching its results for single elements."""
    flow: tuple[tuple[str, str], ...]
    """Distinct pairs (op type, type of an op that consumes its output), without PLUMBING."""
    fixed_ops: dict[str, int]
    """Op type -> number of ops that do not depend on random numbers; empty if the function draws none."""
    random_site: Site | None
    """First line of the user's function that draws a random number."""
    unchanged: tuple[tuple[int, int], ...]
    """Pairs (component of the result, component of the element) that are the same tensor."""
    used_inputs: tuple[int, ...]
    """Components of the element that the function reads."""
    varying_parameters: tuple[str, ...]
    """As in `FunctionFacts`."""


def dataflow_of(
    graph: Any,  # noqa: ANN401
    random_ops: Iterable[str],
    site: Site | None,
    alike: Set[str] = frozenset(),
    unlike: Set[str] = frozenset(),
) -> Dataflow:
    """Return the data flow of a function.

    Args:
        graph: The traced `FuncGraph`.
        random_ops: Types of ops that draw random numbers.
        site: Where the function is defined; None if unknown.
        alike: As for `ops_by_form`.
        unlike: As for `ops_by_form`.
    """
    operations = list(graph.get_operations())
    bodies = {body.signature.name: body.node_def for body in graph.as_graph_def().library.function}
    # captured tensors follow the components of the element in the inputs
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    components = {tensor.op.name: number for number, tensor in enumerate(graph.inputs[:count])}
    random = _depends_on(operations, lambda op: calls_any(op.node_def, bodies, frozenset(random_ops)))
    drawing = [op for op in operations if calls_any(op.node_def, bodies, frozenset(random_ops))]
    real = [op for op in operations if op.type not in PLUMBING]
    fixed: dict[str, int] = {}
    for op in real if drawing else ():
        if op.name not in random:
            fixed[op.type] = fixed.get(op.type, 0) + 1
    return Dataflow(
        is_elementwise=takes_batches(graph, operations, components, alike, unlike),
        flow=_flow(operations),
        fixed_ops=fixed,
        random_site=_first_line(drawing, site),
        unchanged=tuple(
            (number, components[name])
            for number, tensor in enumerate(graph.outputs)
            if (name := origin(tensor).name) in components
        ),
        used_inputs=tuple(sorted({components[name] for op in real for name in _inputs(op) if name in components})),
        varying_parameters=varying_parameters(operations, components, {op.name for op in drawing}),
    )


def _inputs(op: Any) -> list[str]:  # noqa: ANN401
    return [origin(tensor).name for tensor in op.inputs]


def _depends_on(operations: Iterable[Any], is_start: Callable[[Any], bool]) -> set[str]:
    """Return the names of the ops for which `is_start` holds and of all ops downstream of them.

    Args:
        operations: Ops in topological order, as graphs list them.
        is_start: The condition.
    """
    names: set[str] = set()
    for op in operations:
        if is_start(op) or any(tensor.op.name in names for tensor in op.inputs):
            names.add(op.name)
    return names


def calls_any(node: Any, bodies: Mapping[str, Any], wanted: frozenset[str]) -> bool:  # noqa: ANN401
    """Return whether the node has one of the types, or calls a function (at any depth) that contains such a node.

    Args:
        node: A node of a graph.
        bodies: Name of a function of the graph's library -> its nodes.
        wanted: Op types, such as `PyFunc`.
    """
    return any(inner.op in wanted for inner in nodes_inside(node, bodies))


def nodes_inside(node: Any, bodies: Mapping[str, Any]) -> Iterator[Any]:  # noqa: ANN401
    """Yield the node and those of the functions that it calls, at any depth; of each function once.

    Args:
        node: A node of a graph.
        bodies: Name of a function of the graph's library -> its nodes.
    """
    pending, seen = [node], set()
    while pending:
        current = pending.pop()
        yield current
        for attribute in current.attr.values():
            names = [attribute.func.name, *(function.name for function in attribute.list.func)]
            for name in names:
                if name in bodies and name not in seen:
                    seen.add(name)
                    pending += bodies[name]


def _flow(operations: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    pairs = {
        (maker.type, op.type): None
        for op in operations
        if op.type not in PLUMBING
        for tensor in op.inputs
        if (maker := origin(tensor)).type not in PLUMBING
    }
    return tuple(pairs)[:_MAX_FLOW]


def _first_line(drawing: Iterable[Any], site: Site | None) -> Site | None:
    """Return the first line of the user's function in which one of the ops was made."""
    if site is None:
        return None
    lines = []
    for op in drawing:
        own = [
            frame.lineno
            for frame in getattr(op, "traceback", ())
            if frame.filename == site.file and site.line <= frame.lineno <= site.end_line
        ]
        lines += own[-1:]
    return Site(site.file, min(lines), 1, min(lines), 1) if lines else None
