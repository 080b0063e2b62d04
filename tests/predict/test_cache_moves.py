"""Which cache moves to the place of a new one, and which caches would hold the same elements twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advisor.rules.repeated_work import RepeatedWork

from advisor.model.edits import InsertAfter, MoveAfter, Remove
from advisor.predict import cache_edits, cache_places
from advisor.rule import Finding
from advisor.testing import batch, cache, map_, pipeline, shuffle, source
from tests.predict.simulated_passes import script

CACHED = (source(elements=320, bytes=1_000), cache(), map_("decode", ms=5, bytes=9_000), batch(32))
COPIED = (source(elements=320, bytes=100_000), cache(), batch(32, ms=20))


def place(made, method="map"):
    return next((place for place in cache_places(made, made.main) if place.call.method == method), None)


def existing(made):
    return next(call for call in made.calls if call.method == "cache")


def with_call(made, call, **fields):
    changed = replace(call, **fields)
    return replace(made, calls=tuple(changed if other.id == call.id else other for other in made.calls))


def test_a_cache_before_costly_work_moves_after_it():
    cache_place = place(made := script(*CACHED))
    assert cache_place.replaced == existing(made)
    assert cache_edits(cache_place) == (InsertAfter(cache_place.call.id, "cache"), Remove(existing(made).id))
    assert (cache_place.bytes, cache_place.replaced_bytes, cache_place.added_bytes) == (
        320 * 9_000,
        320 * 1_000,
        320 * 8_000,
    )


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_cache_moves_behind_batches_unless_their_rows_are_shuffled_anew(is_shuffled):
    """Once a map is vectorised, it takes batches: a cache behind it would keep the shuffled order of the first pass."""
    shuffled = (shuffle(),) if is_shuffled else ()
    stages = (
        source(elements=320, bytes=1_000),
        map_("parse", ms=0.1),
        cache(),
        *shuffled,
        batch(32),
        map_("scale", ms=5),
    )
    made = pipeline(*stages, consumer_ms=1, epochs=5, cores=2).analysis
    fixes = [found.fix for found in RepeatedWork().check(made) if isinstance(found, Finding) and found.fix is not None]
    behind = [edit for fix in fixes for edit in fix.edits if isinstance(edit, InsertAfter) and edit.method == "cache"]
    assert bool(behind) != is_shuffled


def test_a_cache_before_a_batch_moves_after_it():
    cache_place = place(made := script(*COPIED), "batch")
    assert cache_place.replaced == existing(made) and cache_place.added_bytes == 0


def test_a_shuffle_between_moves_too():
    stages = (source(elements=320), cache(), shuffle(), map_("decode", ms=5, bytes=9_000), batch(32))
    cache_place = place(made := script(*stages))
    moved = next(call for call in made.calls if call.method == "shuffle")
    assert cache_edits(cache_place) == (
        MoveAfter(moved.id, cache_place.call.id), InsertAfter(cache_place.call.id, "cache"), Remove(existing(made).id)
    )  # fmt: skip


def test_a_cache_file_stays_where_it_is():
    made = script(*CACHED[:1], cache("elements"), *CACHED[2:])
    cache_place = place(made)
    assert cache_place.replaced is None and cache_edits(cache_place) == (InsertAfter(cache_place.call.id, "cache"),)


def test_a_cache_of_a_library_stays_and_is_not_held_twice():
    made = script(*CACHED)
    assert place(with_call(made, existing(made), library="tensorflow_datasets")).replaced is None
    made = script(*COPIED)
    assert place(with_call(made, existing(made), library="tensorflow_datasets"), "batch") is None


def test_a_cache_that_another_dataset_reads_stays():
    made = script(*CACHED)
    branch = replace(made.calls[-1], id="branch", inputs=(existing(made).id,), site=None)
    assert place(replace(made, calls=(*made.calls, branch))).replaced is None


def test_a_cache_that_another_consumer_reads_stays():
    made = script(*CACHED)
    reader = replace(made.main.consumer, id="adapt", call_id=existing(made).id)
    recording = replace(made.recording, consumers=(*made.recording.consumers, reader))
    assert place(replace(made, recording=recording)).replaced is None


def test_a_cache_in_a_helper_stays_if_the_map_is_not():
    """`train = load().map(decode)`, `other = load()`: without its cache, the second one becomes slower."""
    made = script(*CACHED)
    again = replace(existing(made), id="again")
    assert place(replace(made, calls=(*made.calls, again))).replaced is None
    both = replace(place(made).call, id="both", inputs=("again",))
    assert place(replace(made, calls=(*made.calls, again, both))).replaced == existing(made)


@pytest.mark.parametrize(
    "stages",
    [COPIED, (source(elements=320), cache(), shuffle(), map_("decode", ms=5, bytes=9_000), batch(32))],
    ids=["batch", "shuffle and map"],
)
def test_no_elements_are_ever_held_twice(stages):
    made = pipeline(*stages, consumer_ms=2, epochs=3).analysis
    (finding,) = RepeatedWork().check(made)
    assert isinstance(finding, Finding) and finding.fix is not None
    assert Remove(existing(made).id) in finding.fix.edits


def test_batches_of_shuffled_elements_are_not_cached():
    stages = (source(elements=320, bytes=100_000), cache(), shuffle(), batch(32, ms=20))
    made = pipeline(*stages, consumer_ms=2, epochs=3).analysis
    assert list(RepeatedWork().check(made)) == []


def test_the_size_of_a_batch_of_unknown_shape_is_that_of_its_elements():
    made = script(*COPIED)
    batched = made.calls[-1]
    made = with_call(made, batched, element_bytes=None)
    iterators = tuple(replace(it, element_bytes=None) if batched in it.calls else it for it in made.main.iterators)
    iterators = tuple(replace(it, calls=tuple(made.call(call.id) for call in it.calls)) for it in iterators)
    made = replace(made, pipelines=(replace(made.main, iterators=iterators),))
    assert place(made, "batch").bytes == 320 * 100_000
