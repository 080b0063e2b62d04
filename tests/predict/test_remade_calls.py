"""Datasets that the script makes again for every epoch: what that costs, and that a cache in them saves nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.predict import cache_places, is_cached_downstream, is_read_again, remade
from advisor.predict.remade_calls import calls_with_lost_caches
from advisor.testing import batch, cache, map_, pipeline, repeat, source

STAGES = (source(elements=3_200), map_("decode", ms=5), batch(32))


def script(*stages, epochs=4, making_ms=300, **more):
    return pipeline(*(stages or STAGES), consumer_ms=10, epochs=epochs, making_ms=making_ms, **more).analysis


def keeping(made, method):
    """The same script, which makes the calls up to that method once, before its loop."""
    own = {call.id for call in made.calls[-len(STAGES) :]}
    last = next(call for call in made.calls if call.id in own and call.method == method)
    chain, node = {last.id}, last
    while node.inputs:
        node = next(call for call in made.calls if call.id == node.inputs[0])
        chain.add(node.id)
    calls = [
        call for call in made.calls if call.id in own or call.site not in {c.site for c in made.calls if c.id in chain}
    ]
    once = {call.site: call.id for call in made.calls if call.id in chain}
    by_id = {call.id: call for call in made.calls}
    calls = [replace(call, inputs=tuple(once.get(by_id[i].site, i) for i in call.inputs)) for call in calls]
    return replace(made, calls=tuple(calls))


def test_the_time_to_make_it_again_and_of_an_epoch():
    made = script()
    again = remade(made, made.main)
    assert (again.count, again.is_equal) == (4, True)
    assert again.made_ns == pytest.approx(300e6, rel=0.01)
    assert again.epoch_ns == pytest.approx(100 * made.main.steps.mean_ns)
    assert [call.method for call in again.calls] == ["batch", "map", "TFRecordDataset"]


def test_other_arguments_are_seen():
    made = script(makes_equal=False)
    assert not remade(made, made.main).is_equal


def test_only_equal_ones_are_counted():
    """A helper makes another dataset in between, whose consumer has read a later one of its text."""
    made = script()
    odd = [replace(call, identity="another") if call.id.endswith("_2") else call for call in made.calls]
    again = remade(replace(made, calls=tuple(odd)), made.main)
    assert (again.count, again.is_equal) == (3, True)


def test_the_first_time_is_not_counted():
    made = script()
    slow = tuple(replace(call, made_ns=10**10) if call.id.endswith("_1") else call for call in made.calls)
    assert remade(replace(made, calls=slow), made.main).made_ns == pytest.approx(300e6, rel=0.01)


def test_arguments_that_were_not_compared_are_not_equal():
    made = script()
    made = replace(made, calls=tuple(replace(call, identity="") for call in made.calls))
    assert not remade(made, made.main).is_equal


def test_datasets_that_were_not_recorded_count():
    """Of thousands of datasets the calls of some are analysed; their number is that which the consumer counted."""
    made = script()
    (pipe,) = made.pipelines
    many = replace(made, pipelines=(replace(pipe, consumer=replace(pipe.consumer, iterators=900, datasets=900)),))
    assert remade(many, many.main).count == 900
    few = replace(made, pipelines=(replace(pipe, consumer=replace(pipe.consumer, iterators=900, datasets=4)),))
    assert remade(few, few.main) is None


def test_a_dataset_that_is_made_once_is_not_made_again():
    made = script(making_ms=None)
    assert remade(made, made.main) is None


def test_more_epochs_than_datasets_read_each_of_them_again():
    """Folds of a cross-validation: every dataset is read for many epochs."""
    made = script()
    (pipe,) = made.pipelines
    made = replace(made, pipelines=(replace(pipe, consumer=replace(pipe.consumer, iterators=40)),))
    assert remade(made, made.main) is None
    assert cache_places(made, made.main)


def test_a_cache_in_it_would_be_lost():
    made = script()
    assert cache_places(made, made.main) == []
    assert not is_read_again(made, made.main, made.calls[-1])
    kept = script(making_ms=None)
    assert cache_places(kept, kept.main)
    assert is_read_again(kept, kept.main, kept.calls[-1])


def test_a_cache_that_a_repeat_reads_is_not_lost():
    made = script(*STAGES, repeat(3))
    assert {place.call.method for place in cache_places(made, made.main)} >= {"map"}


def test_what_is_made_before_the_loop_may_be_cached():
    made = keeping(script(), "map")
    assert {place.call.method for place in cache_places(made, made.main)} == {"TFRecordDataset", "map"}
    again = remade(made, made.main)
    assert [call.method for call in again.calls] == ["batch"]


def test_what_precedes_its_cache_works_in_every_epoch():
    stages = (source(elements=3_200), map_("decode", ms=5), cache(), batch(32))
    for made, is_cached in (
        (script(*stages), False),
        (script(*stages, making_ms=None), True),
        (script(*stages, repeat(3)), True),
    ):
        call = next(call for call in made.calls if call.method == "map" and call.id in {c.id for c in made.calls[-5:]})
        assert is_cached_downstream(made, made.main, call) is is_cached


def test_its_caches_are_named():
    made = script(source(elements=3_200), map_("decode", ms=5), cache(), batch(32))
    assert [call.method for call in remade(made, made.main).caches] == ["cache"]
    made = script(source(elements=3_200), map_("decode", ms=5), cache("file"), batch(32))
    assert remade(made, made.main).caches == ()


def test_a_cache_is_lost_unless_a_repeat_reads_it():
    stages = (source(elements=3_200), map_("decode", ms=5), cache(), batch(32))
    made = script(*stages)
    own = {call.id for call in made.calls[-4:]}
    assert calls_with_lost_caches(made, made.main) == own
    made = script(*stages, repeat(3))
    assert calls_with_lost_caches(made, made.main) == frozenset()
    made = script(*stages, making_ms=None)
    assert calls_with_lost_caches(made, made.main) == frozenset()
