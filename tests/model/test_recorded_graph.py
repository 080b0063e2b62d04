"""The graph of recorded calls: what is upstream, downstream and inside, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from advisor.model.calls import Call
from advisor.model.recorded_graph import RecordedGraph


def graph_of(**inputs: str) -> RecordedGraph:
    """Calls by id, each with the ids of its inputs in one text."""
    return RecordedGraph(tuple(Call(call_id, "map", None, inputs=tuple(text)) for call_id, text in inputs.items()))


def ids(calls: Iterable[Call]) -> str:
    return "".join(call.id for call in calls)


def diamond() -> RecordedGraph:
    """`a` feeds `b` and, over `d`, `c`; `z` joins them, the longer branch first."""
    return graph_of(a="", b="a", d="a", c="d", z="cb")


def test_upstream_is_nearest_first_in_the_order_of_the_inputs_or_of_the_recording():
    graph = diamond()
    assert ids(graph.upstream(graph.by_id["z"])) == "zcbda"
    assert ids(graph.upstream_of_all([graph.by_id["d"], graph.by_id["b"]])) == "bda"
    assert graph.upstream_of_all([]) == ()


def test_downstream_is_everything_built_on_a_call():
    graph = diamond()
    assert graph.downstream(graph.by_id["d"]) == {"c", "z"}
    assert graph.downstream(graph.by_id["z"]) == frozenset()
    assert graph.is_consumed(graph.by_id["b"]) and not graph.is_consumed(graph.by_id["z"])


def test_consumers_come_before_what_they_consume():
    graph = diamond()
    order = ids(graph.downstream_first(graph.by_id["a"]))
    assert sorted(order) == list("abcdz")
    assert all(order.index(call.id) < order.index(i) for call in graph.calls for i in call.inputs)


def test_the_end_of_a_dataset_is_a_call_that_nothing_consumes():
    graph = diamond()
    assert {graph.end_of(call).id for call in graph.calls} == {"z"}
    split = graph_of(a="", t="a", v="a", w="v")
    assert split.end_of(split.by_id["a"]).id == "t"


def test_a_line_upstream_ends_where_inputs_join():
    joined = graph_of(a="", z="ac", c="a", m="z", n="m")
    assert ids(joined.line(joined.by_id["n"])) == "nmz"
    assert ids(joined.line(joined.by_id["c"])) == "ca"
    unrecorded = graph_of(b="a", c="b")
    assert ids(unrecorded.line(unrecorded.by_id["c"])) == "cb"


def test_a_line_downstream_is_none_where_a_dataset_has_several_consumers():
    graph = diamond()
    assert graph.line_after(graph.by_id["a"]) is None
    assert ids(graph.line_after(graph.by_id["d"]) or ()) == "cz"
    assert graph.line_after(graph.by_id["z"]) == ()
    twice = graph_of(a="", z="aa")
    assert ids(twice.line_after(twice.by_id["a"]) or ()) == "z"


def test_a_path_begins_after_the_call():
    graph = diamond()
    assert ids(graph.path(graph.by_id["a"], graph.by_id["z"]) or ()) == "bz"
    assert graph.path(graph.by_id["z"], graph.by_id["z"]) == ()
    assert graph.path(graph.by_id["b"], graph.by_id["c"]) is None


@pytest.mark.parametrize(
    ("stops", "is_certain"),
    [("", False), ("b", False), ("c", False), ("bc", True), ("bd", True), ("z", True), ("bcz", True)],
)
def test_both_branches_of_a_diamond_need_a_stop(stops, is_certain):
    graph = diamond()
    assert graph.always_through(graph.by_id["a"], graph.by_id["z"], frozenset(stops)) is is_certain


def test_a_call_does_not_stop_itself():
    graph = diamond()
    assert not graph.always_through(graph.by_id["z"], graph.by_id["z"], frozenset())
    assert graph.always_through(graph.by_id["d"], graph.by_id["z"], frozenset("c"))


def test_nested_calls_are_in_the_order_of_the_recording_per_depth():
    calls = [
        Call("of_late", "range", None, nested_in="late"),
        Call("of_early", "range", None, nested_in="early"),
        Call("early", "map", None, made_by="outer"),
        Call("late", "map", None, nested_in="outer", made_by="outer"),
        Call("outer", "interleave", None, nested_in="outer"),
    ]
    graph = RecordedGraph(tuple(calls))
    assert [call.id for call in graph.nested(calls[-1])] == ["early", "late", "of_late", "of_early"]
    assert graph.nested(calls[0]) == ()


@pytest.mark.parametrize("unknown", ["inputs", "nested_in", "made_by"])
def test_calls_that_were_not_recorded_are_no_part_of_the_graph(unknown):
    call = Call("a", "map", None, **{unknown: ("gone",) if unknown == "inputs" else "gone"})
    graph = RecordedGraph((call,))
    assert graph.upstream(call) == (call,)
    assert graph.nested(call) == ()
