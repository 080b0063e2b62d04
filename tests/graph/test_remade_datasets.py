"""Which datasets of one text count as one: those made with equal arguments from equal inputs, and read by one consumer."""

from __future__ import annotations

from dataclasses import replace

from advisor.graph.remade_datasets import join_remade, joined_names
from advisor.model.calls import Call, Site
from advisor.model.recording import Consumer, Host, Recording, ScriptExit
from advisor.model.trace import HostTrace, IteratorFacts

HOST = Host("h", 2, 2, 1, 1)


def site(line):
    return Site("train.py", line, 1, line, 9)


def epoch(number, rows="rows", function="f"):
    """`from_tensor_slices(rows).interleave(function).batch(8)`, in which the interleave's function makes a `map`."""
    a, b, inner, c = (f"tfadv_{4 * number + i}" for i in range(4))
    return (
        Call(a, "from_tensor_slices", site(3), identity=rows),
        Call(inner, "map", site(1), nested_in=b),
        Call(b, "interleave", site(4), inputs=(a,), identity=function),
        Call(c, "batch", site(5), inputs=(b,), identity="8"),
    )


def recording(*epochs, consumers=None):
    calls = tuple(call for epoch in epochs for call in epoch)
    consumers = consumers or (Consumer("c0", calls[-1].id, "for", site(9), iterators=len(epochs)),)
    return Recording("train.py", HOST, ScriptExit("stopped"), calls=calls, consumers=consumers)


def test_equal_datasets_take_the_name_of_the_last_one():
    assert joined_names(recording(epoch(0), epoch(1))) == {
        "tfadv_0": "tfadv_4",
        "tfadv_1": "tfadv_5",
        "tfadv_2": "tfadv_6",
        "tfadv_3": "tfadv_7",
    }


def test_what_is_made_of_other_rows_is_another_dataset():
    assert joined_names(recording(epoch(0, rows="others"), epoch(1))) == {}


def test_another_function_makes_another_dataset_from_there_on():
    assert joined_names(recording(epoch(0, function="g"), epoch(1))) == {"tfadv_0": "tfadv_4"}


def test_calls_that_were_not_compared_stay_apart():
    first = tuple(replace(call, identity="") for call in epoch(0))
    last = tuple(replace(call, identity="") for call in epoch(1))
    assert joined_names(recording(first, last)) == {}


def test_two_consumers_keep_their_datasets():
    both = (Consumer("c0", "tfadv_3", "for", site(9)), Consumer("c1", "tfadv_7", "for", site(19)))
    assert joined_names(recording(epoch(0), epoch(1), consumers=both)) == {}


def test_functions_that_make_other_datasets_are_not_joined_inside():
    first = tuple(replace(call, method="filter") if call.nested_in else call for call in epoch(0))
    assert "tfadv_2" not in joined_names(recording(first, epoch(1)))


def test_the_names_of_iterators_are_replaced_whole():
    facts = {
        number: IteratorFacts(number, 0, "Iterator::Root::MapAndBatch", name, 1)
        for number, name in enumerate(("fused(tfadv_1,tfadv_3)", "tfadv_10", "inject/prefetch_tfadv_3"))
    }
    host = HostTrace("h", "p", (), (), facts)
    joined = join_remade(host, recording(epoch(0), epoch(1)))
    names = [iterator.dataset_name for iterator in joined.iterators.values()]
    assert names == ["fused(tfadv_5,tfadv_7)", "tfadv_10", "inject/prefetch_tfadv_3"]
    assert join_remade(host, None) is host
