"""Describes the traced functions of a dataset so that two runs of the same script give the same description.

In: a dataset.  Out: digests, which do not depend on names, TensorFlow's counters, seeds, and the order of independent ops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import networkx as nx

from advisor.capture.instrument.code_identity import digest, identity_of

_UNSTABLE_ATTRIBUTES = frozenset(
    {"seed", "seed2", "shared_name", "container", "token", "metadata", "config_proto", "config", "executor_type"}
)
"""Attributes of graph nodes that differ between two traces of the same function or depend on the position of the call."""


def spec_identity(datasets: Iterable[Any]) -> str:
    """Return a digest of the element specs of the datasets; the empty string if there are none."""
    specs = [str(dataset.element_spec) for dataset in datasets]
    return digest(repr(specs)) if specs else ""


def traced_identity(dataset: Any) -> str:  # noqa: ANN401
    """Return a digest of the graphs of a dataset's functions; the empty string if it has none.

    It covers ops, attributes, constants, captured values and results, but not names, seeds and the order in which independent ops
    without state were added: libraries add them in the order of a set, which differs from process to process.
    """
    wrappers: list[Any] = getattr(dataset, "_functions", list)()
    parts = []
    for wrapper in wrappers:
        graph = wrapper.function.graph
        definition = graph.as_graph_def()
        library = {function.signature.name: function for function in definition.library.function}
        results = [tensor.name.removesuffix(":0") for tensor in graph.outputs]
        parts.append(_nodes_identity(definition.node, (), results, library, {}))
        parts += [
            identity_of(outside) for outside, _ in graph.captures if outside.dtype.name not in ("resource", "variant")
        ]
    return digest(*parts) if parts else ""


def _nodes_identity(
    nodes: Any,  # noqa: ANN401
    inputs: Iterable[str],
    results: Iterable[str],
    library: Any,  # noqa: ANN401
    known: dict[str, str],
) -> str:
    """Return a digest of a graph: each node is described by its op, its attributes and the descriptions of its inputs."""
    by_name = {node.name: node for node in nodes}
    described = {name: f"in{number}" for number, name in enumerate(inputs)}
    ordinals = {node.name: str(number) for number, node in enumerate(node for node in nodes if _has_state(node.op))}

    def source(text: str) -> str:
        name, colon, port = text.lstrip("^").partition(":")
        return f"{'^' if text.startswith('^') else ''}{described.get(name, name)}{colon}{port}"

    for name in _in_order(by_name):
        node = by_name[name]
        is_seed = node.op == "Const" and name.rpartition("/")[2].startswith("seed")
        attributes = [
            f"{key}={_attribute(value, library, known)}"
            for key, value in sorted(node.attr.items())
            if not key.startswith("_") and key not in _UNSTABLE_ATTRIBUTES and not (is_seed and key == "value")
        ]
        values = [source(text) for text in node.input if not text.startswith("^")]
        controls = sorted(source(text) for text in node.input if text.startswith("^"))
        described[name] = digest(
            f"{node.op}{ordinals.get(name, '')}({', '.join(values + controls)}) {' '.join(attributes)}"
        )
    return digest(*sorted(described[name] for name in by_name), "->", *(source(text) for text in results))


def _in_order(by_name: dict[str, Any]) -> list[str]:
    """Return the names of nodes, inputs first; in the order of the graph if it has a circle, as loops of TensorFlow 1 have."""
    edges: nx.DiGraph[str] = nx.DiGraph()
    edges.add_nodes_from(by_name)
    for node in by_name.values():
        sources = (text.lstrip("^").partition(":")[0] for text in node.input)
        edges.add_edges_from((name, node.name) for name in sources if name in by_name)
    try:
        return list(nx.topological_sort(edges))
    except nx.NetworkXUnfeasible:
        return list(by_name)


def _has_state(op: str) -> bool:
    """Whether two nodes of an op with equal inputs may have different values; parameters of the function are such nodes, too."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    return definition is None or definition.is_stateful or op == "Placeholder"


def _attribute(value: Any, library: Any, known: dict[str, str]) -> str:  # noqa: ANN401
    """Describe an attribute of a node; functions by their bodies, because their names contain counters."""
    names = [value.func.name] if value.HasField("func") else [function.name for function in value.list.func]
    if not names:
        return digest(value.SerializeToString(deterministic=True))
    identities = []
    for name in names:
        if name not in known:
            known[name] = ""  # ends the recursion if the function calls itself
            body = library.get(name)
            if body is not None:
                inputs = [argument.name for argument in body.signature.input_arg]
                results = [body.ret[argument.name] for argument in body.signature.output_arg]
                known[name] = _nodes_identity(body.node_def, inputs, results, library, known)
        identities.append(known[name])
    return ",".join(identities)
