"""Headroom: what the pipeline could deliver if the training did not hold it back."""

from __future__ import annotations

import pytest

from advisor.predict.best_plan import outlook
from advisor.testing import batch, map_, pipeline, prefetch, source

MS = 1_000_000


def headroom_of(*nodes, **machine):
    made = pipeline(*nodes, **machine).analysis
    assert made.main is not None
    found = outlook(made, made.main, (), ())
    assert found is not None
    return found.headroom


def test_a_serial_map_behind_a_prefetch_limits_to_its_own_time():
    """32 elements of 1 ms each; a step of 80 ms hides them."""
    found = headroom_of(
        source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch(), consumer_ms=80, cores=8
    )
    assert found.element_ns == pytest.approx(32 * MS, rel=0.1)
    assert found.step_speedup == pytest.approx(80 / 32, rel=0.1)
    assert found.low_ns < found.element_ns < found.high_ns
    assert found.limit.resource == "node"
    assert "enough for a training 2.5x faster; then map" in found.sentence
    assert found.sentence.endswith(" the limit.")


def test_the_consumers_own_work_takes_no_core_from_the_pipeline():
    """The step computes on one of the two cores here; on an accelerator it would not."""
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    idle = headroom_of(*nodes, consumer_ms=80, cores=8)
    busy = headroom_of(*nodes, consumer_ms=80, cores=2)
    assert busy is not None
    assert busy.element_ns <= idle.element_ns * 1.05


def test_a_pipeline_as_fast_as_the_training_is_on_the_brink():
    found = headroom_of(
        source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch(), consumer_ms=33, cores=8
    )
    assert found.step_speedup == pytest.approx(1.03, rel=0.01)
    assert found.sentence.endswith("with a faster training step, it would become the problem.")


def test_a_training_that_waits_has_none():
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    assert headroom_of(*nodes, consumer_ms=5, cores=8) is None


def test_speedups_beyond_what_can_be_measured_are_not_told_apart():
    found = headroom_of(source(elements=320), batch(32), prefetch(), consumer_ms=5000, cores=8)
    assert found.step_speedup > 100
    assert found.sentence.endswith("enough for a training more than 100x faster.")
