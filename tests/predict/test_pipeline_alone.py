"""The speedup of the pipeline alone, predicted from the profile of a training: a range that belongs to that quantity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.finding import Effect, Prediction
from advisor.model.pipeline import Analysis, Iterator
from advisor.predict.operational import predict_speedup
from advisor.predict.pipeline_alone import predict_pipeline_alone
from advisor.testing import batch, cache, map_, pipeline, prefetch, source


def iterator_of(analysis: Analysis, name: str) -> Iterator:
    assert analysis.main is not None
    return next(
        it for it in analysis.main.iterators if any(call.function and call.function.name == name for call in it.calls)
    )


def predicted(
    analysis: Analysis, name: str, left: float, best_left: float | None = None
) -> tuple[Prediction, Prediction]:
    """(of a step, of the pipeline alone) if `left` of a map remains, or at best `best_left`."""
    assert analysis.main is not None
    changed = iterator_of(analysis, name).id
    likely = predict_speedup(analysis, analysis.main, {changed: left}, {changed: left})
    assert likely is not None
    step = likely
    if best_left is not None:
        best = predict_speedup(analysis, analysis.main, {changed: best_left}, {changed: best_left})
        assert best is not None
        middle = (likely.value + best.value) / 2
        step = replace(likely, value=middle, high=best.high, best_effects=best.effects)
    alone = predict_pipeline_alone(analysis, analysis.main, step)
    assert alone is not None
    return step, alone


def training(consumer_ms: float = 5.0) -> Analysis:
    return pipeline(
        source(ms=0.002), map_("mask", ms=0.5), batch(32), prefetch(), consumer_ms=consumer_ms, cores=2
    ).analysis


def test_the_range_reaches_from_the_likely_effects_to_the_best_ones() -> None:
    """How much a vectorised function still costs is unknown: the pipeline alone may get four or thirty times faster."""
    _, likely = predicted(training(), "mask", left=0.25)
    _, spread = predicted(training(), "mask", left=0.25, best_left=0.01)
    assert 3 < likely.value < 5
    assert likely.value < spread.value < spread.high
    assert spread.high > 15 > likely.high


def test_a_pipeline_that_the_training_waits_for_gains_at_least_what_a_step_gains() -> None:
    for left in (0.5, 0.1, 0.01):
        step, alone = predicted(training(), "mask", left)
        assert alone.high >= step.high * 0.9 and alone.value >= step.value * 0.9


@pytest.mark.parametrize("best", [(), (Effect("unknown", 0.1, 0.1),)])
def test_without_effects_nothing_is_predicted(best: tuple[Effect, ...]) -> None:
    analysis = training()
    assert analysis.main is not None
    assert predict_pipeline_alone(analysis, analysis.main, Prediction(2, 1, 3, best_effects=best)) is None


def test_what_fills_a_cache_does_not_limit_the_pipeline_behind_it() -> None:
    """The benchmark fills caches first; the profile shows the first pass, in which `parse` still runs."""
    stages = source(ms=0.002), map_("parse", ms=0.5), cache(), map_("scale", ms=0.5), batch(32), prefetch()
    cached = pipeline(*stages, consumer_ms=5, cores=2).analysis
    plain = pipeline(*(stage for stage in stages if stage.type != "MemoryCache"), consumer_ms=5, cores=2).analysis
    assert predicted(plain, "scale", 0.05)[1].high < 3, "parse takes as long"
    assert predicted(cached, "scale", 0.05)[1].value > 6
    # A change of what fills the cache can only be seen in the first pass.
    assert predicted(cached, "parse", 0.05)[1].value == pytest.approx(predicted(plain, "parse", 0.05)[1].value, rel=0.1)
