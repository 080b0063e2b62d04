"""The executed graph and the calls behind it in networkx' node-link format, which other graph tools read, too.

In: (name of the run, dictionary of report.json) pairs.  Out: JSON text of one directed graph.

    import json, networkx as nx
    graph = nx.node_link_graph(json.loads(text), edges="edges")

Nodes are iterators and calls, with a `kind` and the fields that they have in report.json. Edges have a `kind`, too: `input` runs
from an iterator or a call to its consumer, `inside` from a call to the call whose function made it, `runs_as` from a call to its
iterator.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import networkx as nx

from advisor.model.own_files import GRAPH_GENERATOR

Json = dict[str, Any]
Runs = Sequence[tuple[str, Json]]

_LINKS = frozenset({"id", "calls", "parent_id", "inputs", "nested_in", "made_by"})
"""Fields that are edges of the graph, or the node itself."""


def reports_to_node_link(runs: Runs) -> str:
    """Return one graph of all runs. With several runs, node ids begin with the number of the run: `1/p0.3`."""
    graphs = [_graph(report) for _, report in runs]
    names = [f"{number}/" for number in range(1, len(graphs) + 1)]
    graph = nx.union_all(graphs, rename=names) if len(graphs) > 1 else graphs[0]
    graph.graph = {"generator": GRAPH_GENERATOR, "runs": [name for name, _ in runs]}
    return json.dumps(nx.node_link_data(graph, edges="edges"), ensure_ascii=False, allow_nan=False) + "\n"


def _graph(report: Json) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    calls = {call["id"]: call for call in report["calls"]}
    for pipeline in report["pipelines"]:
        of_pipeline = {"kind": "iterator", "pipeline": pipeline["id"], "host": pipeline["host"]}
        for iterator in pipeline["iterators"]:
            graph.add_node(iterator["id"], **of_pipeline, **_fields(iterator))
            calls |= {call["id"]: call for call in iterator["calls"]}
    graph.add_nodes_from((call_id, {"kind": "call", **_fields(call)}) for call_id, call in calls.items())
    for pipeline in report["pipelines"]:
        for iterator in pipeline["iterators"]:
            _connect(graph, "input", iterator["id"], iterator["parent_id"])
            for call in iterator["calls"]:
                _connect(graph, "runs_as", call["id"], iterator["id"])
    for call_id, call in calls.items():
        for owner in (call["nested_in"], call["made_by"]):
            _connect(graph, "inside", call_id, owner)
        for input_id in call["inputs"]:
            _connect(graph, "input", input_id, call_id)
    return graph


def _fields(item: Json) -> Json:
    return {name: value for name, value in item.items() if name not in _LINKS}


def _connect(graph: nx.DiGraph[str], kind: str, source: str, target: str | None) -> None:
    if source in graph and target is not None and target in graph:
        graph.add_edge(source, target, kind=kind)
