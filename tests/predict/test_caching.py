"""Where a cache is worth predicting at all, and what it costs beside what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.calls import Call
from advisor.predict import cache_places, is_cached_downstream
from advisor.testing import batch, cache, map_, pipeline, prefetch, repeat, source, take

STRINGS = "TensorSpec(shape=(), dtype=tf.string, name=None)"
FLOATS = "TensorSpec(shape=(27500,), dtype=tf.float32, name=None)"


def places(made):
    return {place.call.method: place for place in cache_places(made, made.main)}


@pytest.mark.parametrize("kind", ["TensorSlice", "Range"])
def test_what_lies_in_memory_already_is_not_cached(kind):
    made = pipeline(source(kind, elements=100, ms=1), map_("augment", ms=1), batch(8), consumer_ms=1).analysis
    assert not {"from_tensor_slices", "range"} & places(made).keys()
    assert {"map", "batch"} <= places(made).keys()


def spec_of(made, spec):
    """The same with records of that spec, and batches of 880 KB, as the profile says."""
    first, *others = made.calls
    main = made.main
    iterators = tuple(replace(it, element_bytes=880_000) if "batch" in it.name.lower() else it for it in main.iterators)
    main = replace(main, iterators=iterators)
    return replace(made, calls=(replace(first, element_spec=spec), *others), pipelines=(main,))


def test_a_batch_copies_the_strings_of_a_cache():
    made = pipeline(source("TFRecord", elements=100, ms=1), batch(8), consumer_ms=0.001, cores=4).analysis
    method = made.calls[0].method
    numbers, strings = (places(spec_of(made, spec))[method].prediction.value for spec in (FLOATS, STRINGS))
    assert strings == pytest.approx(made.main.step_ns / (880_000 / 4), rel=0.05)
    assert numbers > strings


def test_strings_that_a_map_takes_are_not_copied():
    made = pipeline(
        source("TFRecord", elements=100, ms=1), map_("decode", ms=0.001), batch(8), consumer_ms=0.001
    ).analysis
    method = made.calls[0].method
    numbers, strings = (places(spec_of(made, spec))[method].prediction.value for spec in (FLOATS, STRINGS))
    assert numbers == strings


def with_second_branch(made, start, *methods):
    """The same, zipped before its batch with a second branch of these calls, which begins at `start` (or a source)."""
    *chain, last = made.calls
    branch: list[Call] = []
    for number, method in enumerate(methods):
        inputs = (branch[-1].id,) if branch else (start,) if start else ()
        branch.append(Call(f"b{number}", method, None, inputs=inputs))
    both = Call("zip", "zip", None, inputs=(chain[-1].id, branch[-1].id if branch else start))
    return replace(made, calls=(*chain, *branch, both, replace(last, inputs=("zip",))))


def test_a_cache_on_one_branch_of_a_zip_is_not_one_of_the_other():
    made = pipeline(source(), map_("decode", ms=1), cache(), batch(8), consumer_ms=1).analysis
    files, decode, *_ = made.calls
    assert is_cached_downstream(made, made.main, decode)

    one = with_second_branch(made, files.id, "map")
    assert is_cached_downstream(one, one.main, decode)
    assert not is_cached_downstream(one, one.main, files), "the other branch reads the files in every epoch"
    assert not is_cached_downstream(one, one.main, one.call("b0"))
    assert not is_cached_downstream(one, one.main, one.call("zip"))

    short = with_second_branch(made, decode.id)
    assert not is_cached_downstream(short, short.main, files), (
        "the second branch is no more than what the first one caches"
    )

    both = with_second_branch(made, files.id, "map", "cache")
    assert all(is_cached_downstream(both, both.main, call) for call in (files, decode, both.call("b0")))


def test_a_cache_that_is_cut_short_holds_nothing():
    made = pipeline(source(), map_("decode", ms=1), cache(), take(10), batch(8), consumer_ms=1).analysis
    assert not is_cached_downstream(made, made.main, made.calls[1])


@pytest.mark.parametrize(
    ("stages", "is_cached"),
    [
        ((map_("decode", ms=5), batch(8), repeat(), take(13)), True),  # 12 batches are a pass: its end is reached
        ((map_("decode", ms=5), batch(8), repeat(), prefetch(), take(13)), True),
        ((map_("decode", ms=5), batch(8), repeat(), take(12)), False),  # `take` does not ask for more than it returns
        ((map_("decode", ms=5), batch(8), take(13)), True),
        ((map_("decode", ms=5), batch(8), take(11), repeat()), False),
        ((map_("decode", ms=5), take(50), batch(8), repeat(), take(10**9)), False),
    ],
)
def test_a_take_of_more_than_one_pass_leaves_a_cache_whole(stages, is_cached):
    made = pipeline(source(elements=96), *stages, consumer_ms=1, epochs=3).analysis
    assert ("map" in places(made)) is is_cached
