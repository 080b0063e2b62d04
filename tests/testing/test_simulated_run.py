"""The timing of a simulated run: a production line of threads, of which the slowest determines the step."""

from __future__ import annotations

import pytest

from advisor.testing import AUTOTUNE, batch, map_, pipeline, prefetch, shuffle, source


def run_of(*stages, consumer_ms=10.0, cores=8, **more):
    return pipeline(*stages, consumer_ms=consumer_ms, cores=cores, **more).analysis


def step_ms(analysis) -> float:
    return analysis.main.steps.mean_ns / 1e6


@pytest.mark.parametrize(("calls", "expected"), [(1, 160), (2, 80), (4, 40), (AUTOTUNE, 170 / 8)])
def test_a_parallel_map_has_as_many_threads_as_calls_and_all_share_the_cores(calls, expected):
    """32 elements of 5 ms a step. With AUTOTUNE, 8 cores do them and the 10 ms of the consumer."""
    made = run_of(source(), map_("decode", ms=5, calls=calls), batch(32))
    assert step_ms(made) == pytest.approx(expected)
    assert made.main.wait_share == pytest.approx(1 - 10 / expected)


def test_times_of_one_thread_add_up_and_a_prefetch_parts_them():
    stages = source(ms=0.5), map_("parse", ms=0.5, random=True), shuffle(), batch(32)
    together = run_of(*stages, prefetch(), consumer_ms=20)
    parted = run_of(*stages[:1], prefetch(), *stages[1:], prefetch(), consumer_ms=20)
    assert step_ms(together) == pytest.approx(32, rel=0.01)
    assert step_ms(parted) == pytest.approx(20, rel=0.01)


def test_the_wait_is_blamed_on_the_slowest_thread():
    made = run_of(source(ms=0.1), map_("decode", ms=5, calls=1), batch(32))
    blamed = max(made.main.iterators, key=lambda iterator: iterator.blame_share)
    assert blamed.main_call.method == "map" and made.main.bottleneck.iterator_id == blamed.id
    assert sum(iterator.blame_share for iterator in made.main.iterators) == pytest.approx(1)


def test_a_fast_pipeline_leaves_the_step_to_the_consumer():
    made = run_of(source(), map_("decode", ms=0.1), batch(32), prefetch())
    assert step_ms(made) == pytest.approx(10)
    assert (made.verdict.level, made.main.wait_share) == ("none", 0)


def test_python_code_computes_one_element_at_a_time():
    made = run_of(source("Generator", ms=1), map_("decode", ms=0.1), batch(32), prefetch())
    assert step_ms(made) == pytest.approx(32)
    assert made.usage.cpu_ns <= made.usage.wall_ns * 8
