"""Service demands and limits: worked out by hand, and laws that hold whatever was measured."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.model.recording import Accelerator
from advisor.predict.demand import FRONT, demands
from advisor.testing import batch, map_, pipeline, source
from tests.predict.test_operational import BEHIND, MS, SERIAL, STEPS, analyses, analysis, iterator


def demands_of(made):
    result = demands(made, made.main)
    assert result is not None
    return result


def test_demands_are_those_of_one_step_with_their_visits():
    made = pipeline(
        source(elements=3200, ms=0.1), map_("augment", ms=1, random=True), batch(32), consumer_ms=20, cores=8
    )
    nodes = {
        it.name: node for it, node in zip(made.analysis.main.iterators, demands_of(made.analysis).nodes, strict=True)
    }
    assert nodes["TFRecord"].visits == pytest.approx(32)
    assert nodes["TFRecord"].busy_ns == pytest.approx(3.2 * MS)
    assert nodes["MapAndBatch"].busy_ns == pytest.approx(32 * MS)
    assert nodes["MapAndBatch"].capacity_per_s == pytest.approx(1000 / 32)


def test_the_slowest_stage_is_the_first_limit():
    result = demands_of(analysis(*BEHIND, consumer_ms=20, wait_ms=80, busy_cores=1.2))
    assert result.limits()[0].iterator_id == "p0.2"
    assert result.limits()[0].step_ns == pytest.approx(100 * MS)  # map and source share the prefetch's thread: 75 + 25


def test_what_runs_in_the_consumers_thread_adds_to_it():
    result = demands_of(analysis(*SERIAL, consumer_ms=20, wait_ms=80, busy_cores=1))
    assert {node.stage for node in result.nodes} == {FRONT}
    assert result.limits()[0].resource == "consumer"
    assert result.limits()[0].step_ns == pytest.approx(100 * MS)


def test_waiting_for_a_core_is_no_demand_and_waiting_for_anything_else_is():
    full = demands_of(analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=0.6, busy_cores=0.6))
    idle = demands_of(analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=8, busy_cores=0.6))
    assert full.core_share == pytest.approx(0.5)  # threads wanted a core for 1.2 of the time and had one for 0.6
    assert full.nodes[2].busy_ns == pytest.approx(37.5 * MS) and full.nodes[2].waiting_ns == 0
    assert idle.core_share == 1
    assert idle.nodes[2].busy_ns == pytest.approx(75 * MS)
    assert idle.nodes[2].cpu_ns == pytest.approx(37.5 * MS)
    assert full.consumer_ns < idle.consumer_ns == pytest.approx(20 * MS)


def test_a_consumer_on_an_accelerator_takes_no_core():
    made = analysis(*BEHIND, consumer_ms=50, wait_ms=50, cores=1, busy_cores=1)
    device = dataclasses.replace(made.host, accelerators=(Accelerator("GPU", "a"),))
    result = demands_of(dataclasses.replace(made, host=device))
    assert result.consumer_ns == pytest.approx(50 * MS) and result.consumer_cpu_ns == pytest.approx(0)


def test_python_under_the_lock_is_a_limit_of_its_own():
    nodes = (
        iterator(0, "Root", None, 0.0),
        iterator(1, "ParallelMapV2", 0, 1.0, 180, parallelism=2, python_ns=90 * MS * STEPS),
    )
    limits = demands_of(analysis(*nodes, consumer_ms=5, wait_ms=95, busy_cores=1.9)).limits({"p0.1": 0.1})
    assert limits[0].resource == "gil" and limits[0].step_ns == pytest.approx(90 * MS)
    sleeping = demands_of(analysis(*nodes, consumer_ms=5, wait_ms=95, busy_cores=0.1)).limits({"p0.1": 0.1})
    assert all(limit.resource != "gil" for limit in sleeping)


def test_the_disk_is_a_limit_where_its_speed_is_known():
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80, busy_cores=1)
    usage = dataclasses.replace(made.usage, read_bytes=90_000_000 * STEPS // 10)
    made = dataclasses.replace(made, usage=usage)
    assert all(limit.resource != "disk" for limit in demands_of(made).limits())
    fast = dataclasses.replace(made, host=dataclasses.replace(made.host, disk_read_bytes_per_s=100e6))
    disk = next(limit for limit in demands_of(fast).limits() if limit.resource == "disk")
    assert disk.step_ns == pytest.approx(90 * MS)  # 9 MB a step at 100 MB/s
    cached = demands_of(fast).limits({"p0.3": 0.0}, {"p0.3": 0.0})
    assert next(limit for limit in cached if limit.resource == "disk").step_ns == 0  # what is kept is not read again


@given(analyses())
def test_no_more_cpu_is_demanded_than_was_used_and_no_stage_is_busier_than_the_step(made):
    result = demands_of(made)
    used = made.usage.cpu_ns / made.usage.wall_ns * result.step_ns
    assert result.cpu_ns + result.consumer_cpu_ns <= used * (1 + 1e-6) + 1e-3
    for limit in result.limits():
        if limit.resource in ("node", "consumer"):
            assert limit.step_ns <= result.step_ns * (1 + 1e-6)


@given(analyses(), st.lists(st.floats(0, 1), min_size=7, max_size=7), st.integers(0, 6), st.floats(0, 1))
def test_less_work_raises_no_limit(made, factors, which, less):
    result = demands_of(made)
    ids = [node.iterator_id for node in result.nodes]
    before = dict(zip(ids, factors, strict=False))
    after = dict(zip(ids, [f * less if i == which else f for i, f in enumerate(factors)], strict=False))
    longest = result.limits(before, before)[0].step_ns
    assert result.limits(after, after)[0].step_ns <= longest * (1 + 1e-9)


@given(analyses())
def test_the_cores_are_never_exceeded(made):
    """However a change spreads work over threads: the rate that is predicted needs no more cores than there are."""
    result = demands_of(made)
    cost = {node.iterator_id: 0.0 for node in result.nodes}
    cpu = next(limit for limit in result.limits(cost, others_keep=0.0) if limit.resource == "cpu")
    assume(cpu.step_ns)
    used = made.usage.cpu_ns / made.usage.wall_ns  # drawn independently of the cores, so there may be more
    assert (result.cpu_ns + result.consumer_cpu_ns) / cpu.step_ns <= max(made.host.cores, used) * (1 + 1e-9)
