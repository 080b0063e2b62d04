"""The critical path: the input behind which most of the wait is, not the longest path."""

from __future__ import annotations

import networkx as nx

from advisor.graph.critical_path import critical_path
from advisor.graph.nodes import Forest, fold
from tests.graph.simulated import Profile


def nested_zip() -> Forest:
    """`zip(map, zip(reader, reader))`, of which the second input was recorded first."""
    profile = Profile()
    name = "Iterator::Root::Zip"
    profile.iterator(1, "Iterator::Root", 0, "z")
    profile.iterator(2, name, 1, "z")
    profile.iterator(3, f"{name}[1]::Zip", 2, "y")
    profile.iterator(4, f"{name}[1]::Zip[0]::TFRecord", 3, "r0")
    profile.iterator(5, f"{name}[1]::Zip[1]::TFRecord", 3, "r1")
    profile.iterator(6, f"{name}[0]::Map", 2, "m")
    return fold(profile.host())


def path_of(forest: Forest, **blame_ns: int) -> list[str]:
    nodes = forest.upstream(forest.roots[0])
    indices = {node.dataset_name: node.index for node in nodes if node.type != "Root"}
    path = critical_path(forest, nodes, {indices[name]: ns for name, ns in blame_ns.items()})
    return [forest.nodes[index].dataset_name for index in path[1:]]


def test_inputs_are_in_the_order_of_the_branches() -> None:
    forest = nested_zip()
    (root,) = forest.roots
    (outer,) = forest.inputs(root)
    assert [node.dataset_name for node in forest.inputs(outer)] == ["m", "y"]
    assert [node.dataset_name for node in forest.upstream(outer)] == ["z", "m", "y", "r0", "r1"]
    assert nx.is_branching(forest.graph.reverse())


def test_the_path_leads_to_most_of_the_wait() -> None:
    blame = {"m": 40, "r0": 30, "r1": 29}
    assert path_of(nested_zip(), **blame) == ["z", "y", "r0"]
    assert path_of(nested_zip(), **blame | {"m": 60}) == ["z", "m"]


def test_the_path_ends_where_nothing_is_waited_for() -> None:
    assert path_of(nested_zip(), y=10) == ["z", "y"]
    assert path_of(nested_zip()) == []


def test_of_equal_inputs_the_first_is_on_the_path() -> None:
    assert path_of(nested_zip(), m=30, r1=30) == ["z", "m"]
