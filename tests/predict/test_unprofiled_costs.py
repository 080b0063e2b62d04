"""Iterators that only pass elements on cost what tf.data's own model says, where the profiler made them cost more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.predict.caching import cache_places
from advisor.predict.unprofiled_costs import unprofiled
from advisor.testing import batch, map_, pipeline, prefetch, shuffle, source


def profiled(slowdown: float, shuffle_ns: float | None, function_ns: int = 1):
    """A map of 0.05 ms and a shuffle that takes half as long under the profiler, whose steps take `slowdown` times as long."""
    analysis = pipeline(
        source(), map_("to_ids", ms=0.05, random=True), shuffle(), batch(64), prefetch(), consumer_ms=0.1, epochs=3
    ).analysis
    main = analysis.main
    iterators = []
    for it in main.iterators:
        cost = 0.025 * 1e6 * it.elements if it.name == "Shuffle" else it.busy_ns
        own = shuffle_ns if it.name == "Shuffle" else None
        works = function_ns if it.name == "Map" else 0
        iterators.append(
            replace(it, busy_ns=round(cost * slowdown), unprofiled_ns=own, function_ns=works, blame_share=0.0)
        )
    total = sum(it.busy_ns for it in iterators)
    iterators = [replace(it, blame_share=it.busy_ns / total) for it in iterators]
    steps = replace(main.steps, mean_ns=round(main.span_ns / main.num_elements))
    main = replace(main, iterators=tuple(iterators), steps=steps)
    main = replace(main, span_ns=round(main.span_ns * slowdown), wait_ns=round(main.wait_ns * slowdown))
    return replace(analysis, pipelines=(main,)), main


def by_name(pipeline, name):
    return next(it for it in pipeline.iterators if it.name == name)


@given(slowdown=st.floats(1, 4), own_ns=st.floats(100, 100_000))
def test_all_blame_and_all_work_are_still_there(slowdown, own_ns):
    _, main = profiled(slowdown, own_ns)
    pipeline = unprofiled(main)
    assert sum(it.blame_share for it in pipeline.iterators) == pytest.approx(1)
    assert sum(it.busy_ns for it in pipeline.iterators) == pytest.approx(
        sum(it.busy_ns for it in main.iterators), rel=1e-3
    )


def test_iterators_that_pass_elements_on_have_their_unprofiled_cost():
    _, main = profiled(2.0, 1_000.0)
    before, after = by_name(main, "Shuffle"), by_name(unprofiled(main), "Shuffle")
    assert after.busy_ns / before.busy_ns == pytest.approx(1_000 / 25_000, rel=0.01)
    assert by_name(unprofiled(main), "Map").blame_share > by_name(main, "Map").blame_share


def test_it_is_never_made_to_cost_more():
    _, main = profiled(1.0, 1e9)
    assert unprofiled(main) is main


def test_nothing_changes_without_a_model_or_without_functions():
    """Where nothing does any work but passing on, what the profiler costs them cannot be told from what they cost."""
    for _, main in (profiled(2.0, None), profiled(2.0, 1_000.0, function_ns=0)):
        assert unprofiled(main) is main


def test_a_cache_is_predicted_from_what_remains_unwatched():
    """What a cache leaves is the shuffle: at its profiled cost it would seem to be a third of all."""
    watched, _ = profiled(2.0, None)
    known, _ = profiled(2.0, 1_000.0)

    def gain(analysis):
        places = {place.call.method: place for place in cache_places(analysis, analysis.main)}
        return places["map"].prediction.value

    assert gain(known) > 3 * gain(watched)


def test_a_few_calls_that_lost_their_core_are_no_work():
    """All that a shuffle, a batch or a cache does in a call is the same each time; a reader's next block is not."""
    _, main = profiled(2.0, None)

    def with_usual(name, share):
        changed = [replace(it, usual_ns=round(it.busy_ns * share)) if it.name == name else it for it in main.iterators]
        return replace(main, iterators=tuple(changed))

    rare = with_usual("Shuffle", 0.1)
    assert by_name(unprofiled(rare), "Shuffle").busy_ns == pytest.approx(
        0.1 * by_name(main, "Shuffle").busy_ns, rel=0.01
    )
    assert by_name(unprofiled(rare), "Map").busy_ns > by_name(main, "Map").busy_ns
    source_name = main.iterators[-1].name
    assert by_name(unprofiled(with_usual(source_name, 0.1)), source_name).busy_ns == by_name(main, source_name).busy_ns


def test_usual_calls():
    from advisor.graph.sums import NodeSums

    calls = [1_000] * 98 + [2_000, 196_000]
    sums = NodeSums(calls_ns=[np.array(calls[:50]), np.array(calls[50:])])
    assert sums.usual_self_ns() == 98 * 1_000 + 2_000 + 10_000
    assert NodeSums().usual_self_ns() == 0
