"""More threads: never the ideal, never a loss promised as a gain, and ranges that say so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.predict import predict_parallel, predict_speedup
from advisor.testing import batch, map_, pipeline, source


def predicted(ms: float, threads: float, cores: int = 8, consumer_ms: float = 0.01):
    made = pipeline(source(), map_("augment", ms=ms, random=True), batch(8), consumer_ms=consumer_ms, cores=cores)
    main = made.analysis.main
    iterator = next(it for it in main.iterators if it.calls and it.calls[0].method == "map")
    ideal = predict_speedup(made.analysis, main, {iterator.id: 1 / threads})
    return predict_parallel(made.analysis, main, [iterator], 1, threads), ideal


@given(ms=st.floats(0.005, 50), threads=st.integers(1, 8))
def test_it_lies_between_nothing_and_the_ideal(ms, threads):
    scaled, ideal = predicted(ms, threads)
    assert 1 <= scaled.low <= scaled.value <= scaled.high
    assert scaled.value <= ideal.value * (1 + 1e-9) and scaled.high <= ideal.high * (1 + 1e-9)


def test_large_elements_lose_a_fifth_small_ones_everything():
    large, _ = predicted(5.0, 2)
    assert large.value == pytest.approx(1.6, rel=0.03)
    tiny, _ = predicted(0.02, 2)
    assert tiny.value == 1.0, "handing one over takes as long as is saved"


def test_the_gain_grows_with_the_elements():
    values = [predicted(ms, 4)[0].value for ms in (0.02, 0.05, 0.1, 1.0, 10.0)]
    assert values == sorted(values) and values[-1] > 1.5 * values[0]


def test_effects_on_iterators_are_reported_without_losses():
    """So that the plan can say that the cores are the limit then, and not a thread that waits for its turn."""
    scaled, _ = predicted(5.0, 4)
    assert [effect.cost for effect in scaled.effects] == [pytest.approx(0.25, rel=0.01)]
    assert [effect.work for effect in scaled.effects] == [1.0]
