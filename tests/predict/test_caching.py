"""Where a cache is worth predicting at all, and what it costs beside what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.predict import cache_places
from advisor.testing import batch, map_, pipeline, source

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
