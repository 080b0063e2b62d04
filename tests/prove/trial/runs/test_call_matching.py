"""Calls of this run are found by id or, if the script numbers them differently, by method, place and order."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.model.calls import Call, Site
from advisor.model.edits import Edit, MoveAfter, Remove
from advisor.prove.trial.runs.call_matching import CallMatching
from advisor.replay.edited import CannotReplay


def call(call_id: str, method: str, line: int | None, cardinality: int | None = 100) -> Call:
    site = None if line is None else Site("train.py", line, 4, line, 20)
    return Call(call_id, method, site, cardinality=cardinality)


FIRST = (call("c0", "range", 1), call("c1", "map", 2), call("c2", "batch", 3))


def test_the_same_ids_need_no_translation():
    matching = CallMatching(FIRST[2], FIRST)
    matching.learn(FIRST)
    assert matching.translate(Remove("c1")) == Remove("c1")
    assert matching.first_ids() is None


def test_calls_in_another_order_are_matched_by_their_place():
    matching = CallMatching(FIRST[2], FIRST)
    matching.learn((call("c0", "batch", 3), call("c1", "range", 1), call("c2", "map", 2)))
    assert matching.translate(MoveAfter("c2", "c1")) == MoveAfter("c0", "c2")
    assert matching.first_ids() == {"c1": "c0", "c2": "c1", "c0": "c2"}


@given(data=st.data())
@pytest.mark.parametrize("kind", get_args(Edit), ids=lambda kind: kind.__name__)
def test_every_id_in_every_kind_of_edit_is_translated(kind, data):
    names = [field.name for field in fields(kind) if field.name.endswith("_id")]
    matching = CallMatching(FIRST[2], FIRST)
    matching.learn((call("c0", "batch", 3), call("c1", "range", 1), call("c2", "map", 2)))
    edit = replace(data.draw(st.from_type(kind)), **dict.fromkeys(names, "c1"))
    assert matching.translate(edit) == replace(edit, **dict.fromkeys(names, "c2"))


def test_calls_of_one_place_are_matched_in_order():
    first = (call("c0", "range", 1), call("c1", "map", 2), call("c2", "map", 2))
    matching = CallMatching(None, first)
    matching.learn((call("c0", "map", 2), call("c1", "range", 1), call("c2", "map", 2)))
    assert [matching.translate(Remove(name)) for name in ("c1", "c2")] == [Remove("c0"), Remove("c2")]


def epoch(number: int) -> tuple[Call, ...]:
    """A dataset that the script makes again for every epoch from the same source."""
    first, last, inner = (f"c{3 * number + i}" for i in (1, 2, 3))
    return (
        replace(call(first, "interleave", 2), inputs=("c0",)),
        replace(call(inner, "map", 3), nested_in=first),
        replace(call(last, "batch", 4), inputs=(first,)),
    )


def test_a_dataset_of_a_later_epoch_is_that_of_the_first_one():
    first = (FIRST[0], *epoch(0), *epoch(1), *epoch(2))
    matching = CallMatching(first[-1], first)
    matching.learn((FIRST[0], *epoch(0)))
    assert [matching.translate(Remove(name)) for name in ("c7", "c8", "c9", "c0")] == [
        Remove(name) for name in ("c1", "c2", "c3", "c0")
    ]
    assert matching.first_ids() == {"c0": "c0", "c1": "c7", "c2": "c8", "c3": "c9"}
    with pytest.raises(CannotReplay, match="interleave"):
        matching.translate(Remove("c4"))


def test_a_call_that_this_run_did_not_make_is_named():
    matching = CallMatching(FIRST[2], FIRST)
    matching.learn((FIRST[0], call("c1", "batch", 3)))
    with pytest.raises(CannotReplay, match="map"):
        matching.translate(Remove("c1"))


def test_the_consumer_is_the_call_at_the_same_place_whatever_its_id():
    matching = CallMatching(FIRST[2], FIRST)
    assert matching.is_consumer(call("c9", "batch", 3))
    assert not matching.is_consumer(call("c2", "batch", 4))


def test_a_consumer_without_a_place_is_known_by_its_id():
    matching = CallMatching(call("c2", "batch", None), ())
    assert matching.is_consumer(call("c2", "batch", None))
    assert not matching.is_consumer(call("c3", "batch", None))


@pytest.mark.parametrize(("cardinality", "is_consumer"), [(2, False), (3, True), (None, True), (-1, True)])
def test_an_unknown_consumer_is_any_dataset_of_more_than_two_elements(cardinality, is_consumer):
    matching = CallMatching(None, ())
    assert matching.is_consumer(call("c0", "range", 1, cardinality)) is is_consumer
