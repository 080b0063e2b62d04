"""Headroom: what the pipeline could deliver if the training did not hold it back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.recording import Recording, ScriptExit
from advisor.model.window_readings import AloneReading
from advisor.predict.best_plan import outlook
from advisor.testing import batch, map_, pipeline, prefetch, source

MS = 1_000_000


def headroom_of(*nodes, alone_ns=None, read_alone=None, core_wait=0.0, as_if_step_ns=None, keras=None, **machine):
    """The headroom; `core_wait`: time for which threads waited for a core, as a multiple of the CPU time."""
    made = pipeline(*nodes, **machine).analysis
    assert made.main is not None and made.usage is not None
    usage = replace(made.usage, core_wait_ns=round(core_wait * made.usage.cpu_ns))
    end = ScriptExit("stopped")
    recording = Recording(
        "train.py", made.host, end, alone_element_ns=alone_ns, read_alone=read_alone, as_if_step_ns=as_if_step_ns
    )
    if keras is not None:
        consumer = replace(made.main.consumer, kind="keras.fit")
        made = replace(made, keras=keras, pipelines=(replace(made.main, consumer=consumer), *made.pipelines[1:]))
    made = replace(made, recording=recording, usage=usage)
    result = outlook(made, made.main, (), ())
    assert result is not None
    return result.headroom


def test_a_serial_map_behind_a_prefetch_limits_to_its_own_time():
    """32 elements of 1 ms each; a step of 80 ms hides them."""
    headroom = headroom_of(
        source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch(), consumer_ms=80, cores=8
    )
    assert headroom.element_ns == pytest.approx(32 * MS, rel=0.1)
    assert headroom.step_speedup == pytest.approx(80 / 32, rel=0.1)
    assert headroom.low_ns < headroom.element_ns < headroom.high_ns
    assert headroom.surest_speedup == pytest.approx(80 / (32 * 1.5), rel=0.1)
    assert headroom.limit.resource == "node"
    assert headroom.sentence == (
        "The input pipeline can deliver at least 667 elements/s (predicted; --headroom measures it): it would limit no step "
        "longer than 48 ms, 1.67x faster than here; then map (as MapAndBatch) is the limit."
    )


def test_beside_a_training_on_the_same_cores_the_range_is_wide():
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    here = headroom_of(*nodes, consumer_ms=80, cores=8)
    elsewhere = headroom_of(
        *nodes, consumer_ms=80, cores=8, as_if_step_ns=80 * MS
    )  # takes no core, like an accelerator
    assert here.high_ns / here.low_ns > 3 * elsewhere.high_ns / elsewhere.low_ns


@pytest.mark.parametrize(
    ("alone_ms", "ends"),
    [
        (
            20.0,
            "delivers 1,600 elements/s (measured): it would limit any step shorter than 20 ms, 4.0x faster than here; then map",
        ),
        (79.0, "delivers 405 elements/s (measured): with a faster training step, it would become the problem."),
        (0.5, "delivers 64,000 elements/s (measured): it would limit only steps more than 100x faster than here."),
    ],
)
def test_a_measured_headroom_replaces_the_predicted_one(alone_ms, ends):
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    headroom = headroom_of(*nodes, consumer_ms=80, cores=8, alone_ns=alone_ms * MS)
    assert headroom.measured_ns == alone_ms * MS
    assert headroom.surest_speedup == headroom.step_speedup == pytest.approx(80 / alone_ms, rel=0.05)
    assert ends in headroom.sentence
    assert "predicted" not in headroom.sentence


def test_a_second_of_reading_replaces_the_prediction():
    """50 batches in a second: 20 ms each, although the map alone is predicted to take 32 ms beside the training."""
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    headroom = headroom_of(*nodes, consumer_ms=80, cores=8, read_alone=AloneReading(50, 1000 * MS))
    assert headroom.element_ns == 20 * MS and headroom.measured_ns is None
    assert headroom.low_ns < 20 * MS < headroom.high_ns < 32 * MS
    assert headroom.sentence == (
        "The input pipeline can deliver at least 1,143 elements/s (read for 1 s without training; --headroom measures longer): "
        "it would limit no step longer than 28 ms, 2.9x faster than here; then map (as MapAndBatch) is the limit."
    )


@pytest.mark.parametrize("how", ["read_alone", "alone_ns"])
def test_a_step_of_several_elements_takes_as_much_longer(how):
    """Keras executes four steps in a call of 80 ms: at 10 ms per batch, a call must take 40 ms."""
    nodes = (source(elements=3200), map_("augment", ms=0.1, random=True), batch(32), prefetch())
    measured = {how: AloneReading(100, 1000 * MS) if how == "read_alone" else 10 * MS}
    found = headroom_of(*nodes, consumer_ms=80, cores=8, keras={"steps_per_execution": 4}, **measured)
    assert found.step_speedup == pytest.approx(2, rel=0.05)
    per_second = 32 * 100 if how == "alone_ns" else 32 * 100 / 1.4
    assert f"{per_second:,.0f} elements/s" in found.sentence


def test_a_training_that_waits_has_none_even_if_it_was_read():
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    assert headroom_of(*nodes, consumer_ms=5, cores=8, read_alone=AloneReading(30, 1000 * MS)) is None


def test_a_measured_headroom_of_a_training_that_waits_is_told():
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    headroom = headroom_of(*nodes, consumer_ms=5, cores=8, alone_ns=30 * MS)
    assert headroom.sentence == "The input pipeline alone delivers 1,067 elements/s (measured)."


def test_without_a_known_batch_size_elements_of_the_root_are_counted():
    headroom = headroom_of(source(elements=320), map_("load", ms=20), prefetch(), consumer_ms=80, cores=8)
    assert f"can deliver at least {1e9 / headroom.high_ns:.0f} elements/s" in headroom.sentence
    slow = headroom_of(source(elements=320), map_("load", ms=2000, random=True), prefetch(), consumer_ms=8000, cores=8)
    assert f"can deliver an element at least every {slow.high_ns / 1e9:.3g} s (predicted" in slow.sentence


def test_a_training_that_does_not_wait_is_fed_at_its_own_rate_at_least():
    """The slow end of the range, 38 ms, would contradict the steps of 33 ms."""
    nodes = (source(elements=3200), map_("augment", ms=0.8, random=True), batch(32), prefetch())
    headroom = headroom_of(*nodes, consumer_ms=33, cores=8)
    assert headroom.high_ns > headroom.step_ns
    assert f"at least {32e9 / headroom.step_ns:.0f} elements/s" in headroom.sentence


def test_waits_for_a_core_are_not_the_pipelines():
    """Threads of the training held the cores for half of the time for which the pipeline's threads wanted one."""
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    free, crowded = (headroom_of(*nodes, consumer_ms=80, cores=2, core_wait=wait) for wait in (0.0, 1.0))
    assert crowded.element_ns == pytest.approx(free.element_ns / 2, rel=0.1)


def test_the_consumers_own_work_takes_no_core_from_the_pipeline():
    """The step computes on one of the two cores here; on an accelerator it would not."""
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    idle = headroom_of(*nodes, consumer_ms=80, cores=8)
    busy = headroom_of(*nodes, consumer_ms=80, cores=2)
    assert busy is not None
    assert busy.element_ns <= idle.element_ns * 1.05


def test_a_pipeline_as_fast_as_the_training_is_on_the_brink():
    headroom = headroom_of(
        source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch(), consumer_ms=33, cores=8
    )
    assert headroom.step_speedup == pytest.approx(1.03, rel=0.01)
    assert headroom.sentence.endswith("with a faster training step, it would become the problem.")


def test_a_training_that_waits_has_none():
    nodes = (source(elements=3200), map_("augment", ms=1, random=True), batch(32), prefetch())
    assert headroom_of(*nodes, consumer_ms=5, cores=8) is None


def test_speedups_beyond_what_can_be_measured_are_not_told_apart():
    headroom = headroom_of(source(elements=320), batch(32), prefetch(), consumer_ms=5000, cores=8)
    assert headroom.step_speedup > 100
    assert headroom.sentence.endswith("it would limit only steps more than 100x faster than here.")
