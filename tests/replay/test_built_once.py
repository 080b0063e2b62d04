"""`BuildOnce` leaves the dataset as it is: every layer passes it on, and none changes a call."""

from __future__ import annotations

from advisor.model.call_graph import CallGraph, CallIdentity
from advisor.model.calls import Call, Site
from advisor.model.edits import BuildOnce, InsertAfter
from advisor.prove.trial.messages import edits_from_json, edits_to_json
from advisor.prove.trial.runs.call_matching import CallMatching
from advisor.replay.edited import lay_out
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.shared_calls import edited_ids, spread

SITE = Site("train.py", 4, 5, 4, 9)
EDIT = BuildOnce("c2", Site("train.py", 9, 14, 9, 16))


def test_it_survives_the_way_to_the_child():
    assert edits_from_json(edits_to_json((EDIT,))) == (EDIT,)


def test_no_call_is_touched():
    laid = lay_out((EDIT,))
    assert laid.targets == set()
    assert laid.numbers == {"c2": [0]}
    graph = CallGraph((CallIdentity("c1", "range"), CallIdentity("c2", "batch", ("c1",))), "c2", 1)
    assert edited_graph(graph, (EDIT,)) == graph
    assert len(edited_graph(graph, (EDIT, InsertAfter("c2", "prefetch"))).calls) == 3


def test_other_datasets_of_the_text_stay_where_they_are():
    calls = {call_id: Call(call_id, "batch", SITE) for call_id in ("c2", "c4")}
    assert spread((EDIT,), calls) == (EDIT,)
    assert edited_ids((EDIT,)) == ("c2",)


def test_the_dataset_of_a_later_epoch_is_that_of_the_held_one():
    first = [Call("c2", "batch", SITE), Call("c4", "batch", SITE)]
    matching = CallMatching(first[1], first)
    matching.learn([Call("c2", "batch", SITE)])
    assert matching.translate(BuildOnce("c4", EDIT.reader)) == EDIT
