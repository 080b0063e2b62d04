"""From which epoch on a cache has paid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.predict import cache_places
from advisor.predict.cache_break_even import find_break_even
from advisor.testing import batch, map_, pipeline, source, unknown_size


def place_of(made, method="map"):
    return next(place for place in cache_places(made, made.main) if place.call.method == method)


@pytest.fixture
def made():
    """320 elements, 10 batches an epoch."""
    return pipeline(
        source(elements=320), map_("decode", ms=5, bytes=1 << 20), batch(32), consumer_ms=5, cores=2
    ).analysis


def test_a_cache_in_memory_pays_from_the_second_epoch_on(made):
    place = place_of(made)
    break_even = find_break_even(made, made.main, place)
    assert break_even.break_even_epoch == 2
    assert break_even.first_epoch_ns == break_even.epoch_ns == pytest.approx(10 * made.main.steps.mean_ns)
    assert break_even.later_epoch_ns == pytest.approx(break_even.epoch_ns / place.prediction.value)


def test_one_on_the_disk_has_to_be_written_first(made):
    place = place_of(made)
    assert place.bytes == 320 << 20
    break_even = find_break_even(made, made.main, place, write_bytes_per_s=32 << 20)
    assert break_even.first_epoch_ns == pytest.approx(break_even.epoch_ns + 10e9)
    saved = break_even.epoch_ns - break_even.later_epoch_ns
    assert break_even.break_even_epoch == int(1 + 10e9 / saved) + 1


@given(st.floats(1e3, 1e12))
def test_break_even_is_the_first_epoch_that_ends_earlier(speed):
    made = pipeline(source(elements=320), map_("decode", ms=5, bytes=9999), batch(32), consumer_ms=5).analysis
    break_even = find_break_even(made, made.main, place_of(made), speed)

    def gain(epochs: int) -> float:
        return epochs * break_even.epoch_ns - break_even.first_epoch_ns - (epochs - 1) * break_even.later_epoch_ns

    n = break_even.break_even_epoch
    assert n >= 2 and gain(n) > -1e-6 * break_even.first_epoch_ns and gain(n - 1) <= 1e-6 * break_even.first_epoch_ns


def test_epochs_of_unknown_length_cause_no_remark():
    made = pipeline(
        unknown_size(source()), map_("decode", ms=5, bytes=9999), batch(32), consumer_ms=5, epochs=2
    ).analysis
    assert find_break_even(made, made.main, place_of(made)) is None
