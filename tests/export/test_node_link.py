"""Node-link graphs: networkx reads them back, and their edges are those of the report."""

from __future__ import annotations

import json

import networkx as nx
import pytest

from advisor.cli import main
from advisor.export.node_link import reports_to_node_link
from tests.report.html.samples import DATA, hostile, proved, real_report


def graph_of(*reports) -> nx.DiGraph:
    return nx.node_link_graph(json.loads(reports_to_node_link([("run", report) for report in reports])), edges="edges")


def edges(graph: nx.DiGraph, kind: str) -> set[tuple[str, str]]:
    return {(source, target) for source, target, edge_kind in graph.edges(data="kind") if edge_kind == kind}


def test_edges_are_those_of_the_report():
    report = real_report("zip_filter")
    iterators = [iterator for pipeline in report["pipelines"] for iterator in pipeline["iterators"]]
    graph = graph_of(report)
    consumed = {(it["id"], it["parent_id"]) for it in iterators if it["parent_id"]}
    assert edges(graph, "input") == consumed | {(i, call["id"]) for call in report["calls"] for i in call["inputs"]}
    assert edges(graph, "runs_as") == {(call["id"], it["id"]) for it in iterators for call in it["calls"]}
    assert nx.is_directed_acyclic_graph(graph)


def test_calls_inside_a_function_lead_to_its_call():
    report = real_report("interleave_map")
    inside = {(call["id"], call["nested_in"]) for call in report["calls"] if call["nested_in"]}
    assert inside
    assert edges(graph_of(report), "inside") >= inside


def test_nodes_have_the_fields_of_the_report():
    report = real_report("interleave_map")
    graph = graph_of(report)
    iterator = next(it for pipeline in report["pipelines"] for it in pipeline["iterators"] if it["is_bottleneck"])
    node = graph.nodes[iterator["id"]]
    assert (node["kind"], node["name"], node["blame_ns"]) == ("iterator", iterator["name"], iterator["blame_ns"])
    assert graph.nodes[iterator["calls"][0]["id"]]["line"] == iterator["calls"][0]["line"]


def test_runs_do_not_mix():
    one, two = real_report("keras_fit"), real_report("zip_filter")
    graph = graph_of(one, two)
    assert len(graph) == len(graph_of(one)) + len(graph_of(two))
    assert nx.is_isomorphic(graph.subgraph(node for node in graph if node.startswith("2/")), graph_of(two))


def test_texts_of_any_kind_survive():
    report = hostile()
    node = graph_of(report).nodes[report["calls"][0]["id"]]
    assert node["text"] == report["calls"][0]["text"]


def test_a_parent_that_is_not_there_adds_no_node():
    report = proved()
    report["pipelines"][0]["iterators"][0]["parent_id"] = "gone"
    assert "gone" not in graph_of(report)


def test_command_replaces_only_its_own_file(tmp_path, capsys):
    out = tmp_path / "graph.json"
    arguments = ["export", str(DATA / "interleave_map"), "--to", "graph", "--out", str(out)]
    assert main(arguments) == main(arguments) == 0
    assert json.loads(out.read_text())["graph"]["runs"] == ["interleave_map"]
    out.write_text("{}")
    assert main(arguments) == 2
    assert out.read_text() == "{}"
    assert capsys.readouterr().err


@pytest.mark.parametrize("damage", [{"iterators": None}, {"iterators": [{"id": []}]}])
def test_a_damaged_report_is_one_sentence(tmp_path, damage, capsys):
    report = proved()
    report["pipelines"][0] |= damage
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    assert main(["export", str(path), "--to", "graph"]) == 2
    assert "is damaged or was edited" in " ".join(capsys.readouterr().err.split())
