"""How data flows through a traced function: which ops feed which, what depends on random numbers, what passes through.

In: the graph that TensorFlow traced of a function given to a transformation.  Out: `Dataflow`.

Components are numbered as `tf.nest.flatten` numbers those of the element. A function that is called inside (`If`, `While`,
`PartitionedCall`) counts as one op that does what its body does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from advisor.model.catalog import ELEMENTWISE_OPS
from advisor.model.recording import Site

PLUMBING = frozenset({"Placeholder", "_Arg", "_Retval", "NoOp", "Const", "Identity", "IdentityN"})
"""Ops that do nothing with the data."""

_MAX_FLOW = 200
"""Pairs of op types kept: a whole model inside a function would swell the recording."""


@dataclass(frozen=True, slots=True)
class Dataflow:
    """What the graph of one function shows."""

    is_elementwise: bool
    """One call on a batch of elements gives the batch of what it gives for each."""
    flow: tuple[tuple[str, str], ...]
    """Distinct (op type, type of an op that takes its result), plumbing left out."""
    fixed_ops: dict[str, int]
    """Op type -> number of ops that depend on no random number; empty where none is drawn."""
    random_site: Site | None
    """The user's line that first draws a random number."""
    unchanged: tuple[tuple[int, int], ...]
    """(component of the result, component of the element) that is the same tensor."""
    used_inputs: tuple[int, ...]
    """Components of the element that the function reads."""


def dataflow_of(graph: Any, random_ops: Iterable[str], site: Site | None) -> Dataflow:  # noqa: ANN401
    """The flow of a `FuncGraph`. `random_ops`: types of ops that draw numbers; `site`: where the function stands."""
    operations = list(graph.get_operations())
    bodies = {body.signature.name: body.node_def for body in graph.as_graph_def().library.function}
    # captured tensors are inputs too, behind the element's components
    count = len(graph.inputs) - len(getattr(graph, "captures", ()))
    components = {tensor.op.name: number for number, tensor in enumerate(graph.inputs[:count])}
    random = _depends_on(operations, lambda op: _calls_any(op.node_def, bodies, frozenset(random_ops)))
    drawing = [op for op in operations if _calls_any(op.node_def, bodies, frozenset(random_ops))]
    real = [op for op in operations if op.type not in PLUMBING]
    fixed: dict[str, int] = {}
    for op in real if drawing else ():
        if op.name not in random:
            fixed[op.type] = fixed.get(op.type, 0) + 1
    return Dataflow(
        is_elementwise=_is_elementwise(graph, operations, components),
        flow=_flow(operations),
        fixed_ops=fixed,
        random_site=_first_line(drawing, site),
        unchanged=tuple(
            (number, components[name])
            for number, tensor in enumerate(graph.outputs)
            if (name := _origin(tensor).name) in components
        ),
        used_inputs=tuple(sorted({components[name] for op in real for name in _inputs(op) if name in components})),
    )


def _origin(tensor: Any) -> Any:  # noqa: ANN401
    """The op that a tensor really comes from."""
    op, seen = tensor.op, 0
    while op.type == "Identity" and len(op.inputs) == 1 and seen < 100:
        op, seen = op.inputs[0].op, seen + 1
    return op


def _inputs(op: Any) -> list[str]:  # noqa: ANN401
    return [_origin(tensor).name for tensor in op.inputs]


def _depends_on(operations: Iterable[Any], is_start: Callable[[Any], bool]) -> set[str]:
    """Names of the ops for which `is_start` holds, and of all that take their results (graphs list ops in order)."""
    found: set[str] = set()
    for op in operations:
        if is_start(op) or any(tensor.op.name in found for tensor in op.inputs):
            found.add(op.name)
    return found


def _calls_any(node: Any, bodies: Mapping[str, Any], wanted: frozenset[str]) -> bool:  # noqa: ANN401
    """Whether the node is of a wanted type, or calls a function (at any depth) that holds one."""
    waiting, seen = [node], set()
    while waiting:
        each = waiting.pop()
        if each.op in wanted:
            return True
        for attribute in each.attr.values():
            names = [attribute.func.name, *(function.name for function in attribute.list.func)]
            for name in names:
                if name in bodies and name not in seen:
                    seen.add(name)
                    waiting += bodies[name]
    return False


def _flow(operations: Iterable[Any]) -> tuple[tuple[str, str], ...]:
    pairs = {
        (origin.type, op.type): None
        for op in operations
        if op.type not in PLUMBING
        for tensor in op.inputs
        if (origin := _origin(tensor)).type not in PLUMBING
    }
    return tuple(pairs)[:_MAX_FLOW]


def _is_elementwise(graph: Any, operations: Iterable[Any], components: Mapping[str, int]) -> bool:  # noqa: ANN401
    """Whether every op works element by element and no broadcasting depends on the number of dimensions.

    All tensors that stem from the element must have one known rank, so that one more dimension in front is one more for all;
    constants may have no more dimensions than that. What leaves the function must stem from the element.
    """
    ranks: set[int | None] = set()
    varying = set(components)
    for op in operations:
        if op.name not in varying and not any(tensor.op.name in varying for tensor in op.inputs):
            continue
        if op.type not in PLUMBING and op.type not in ELEMENTWISE_OPS:
            return False
        varying.add(op.name)
        ranks |= {tensor.shape.rank for tensor in op.outputs}
    if not components or len(ranks) != 1 or None in ranks:
        return False
    rank = next(iter(ranks))
    constants = (t for op in operations for t in op.inputs if t.op.name not in varying)
    return all(_origin(tensor).name in varying for tensor in graph.outputs) and all(
        tensor.shape.rank is not None and tensor.shape.rank <= rank for tensor in constants
    )


def _first_line(drawing: Iterable[Any], site: Site | None) -> Site | None:
    """The first line of the user's function that one of these ops was made in."""
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
