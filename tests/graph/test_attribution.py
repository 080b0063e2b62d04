"""Blame through asynchronous boundaries, on profiles whose truth is known because they were made by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.graph import analyse
from advisor.model.pipeline import Pipeline
from advisor.model.trace import Trace
from tests.effort import examples
from tests.graph.simulated import Profile, map_after_prefetch


def pipeline_of(profile: Profile) -> Pipeline:
    analysis = analyse(Trace((profile.host(),)), None, "made up")
    assert analysis.main is not None
    return analysis.main


def blame(pipeline: Pipeline) -> dict[str, float]:
    return {it.name: it.blame_share for it in pipeline.iterators}


def test_wait_on_a_prefetch_is_blamed_on_what_its_worker_does() -> None:
    shares = blame(pipeline_of(map_after_prefetch(map_us=900, range_us=100)))
    assert shares["Map"] == pytest.approx(0.9, abs=0.02)
    assert shares["Range"] == pytest.approx(0.1, abs=0.02)
    assert shares["Prefetch"] == pytest.approx(0, abs=0.01)


def test_bottleneck_is_the_map_though_the_classic_path_ends_at_the_prefetch() -> None:
    pipeline = pipeline_of(map_after_prefetch(map_us=900, range_us=100))
    assert pipeline.bottleneck is not None
    assert pipeline.iterator(pipeline.bottleneck.iterator_id).name == "Map"
    assert pipeline.bottleneck.classic_iterator_id is not None
    assert pipeline.iterator(pipeline.bottleneck.classic_iterator_id).name == "Prefetch"
    assert [it.name for it in pipeline.iterators if it.is_on_critical_path] == ["Root", "Prefetch", "Map", "Range"]
    assert [it.name for it in pipeline.iterators if it.is_on_classic_path] == ["Prefetch"]


@settings(max_examples=examples(60))
@given(
    map_us=st.integers(1, 2000), range_us=st.integers(1, 2000), train_us=st.integers(0, 3000), steps=st.integers(4, 40)
)
def test_blame_adds_up_to_the_measured_wait(map_us: int, range_us: int, train_us: int, steps: int) -> None:
    pipeline = pipeline_of(map_after_prefetch(map_us=map_us, range_us=range_us, train_us=train_us, steps=steps))
    assert sum(it.blame_ns for it in pipeline.iterators) == pytest.approx(pipeline.wait_ns, rel=1e-6, abs=10)
    assert sum(it.blame_share for it in pipeline.iterators) == pytest.approx(1)


def test_a_consumer_that_is_slower_than_the_pipeline_waits_for_nothing() -> None:
    analysis = analyse(Trace((map_after_prefetch(map_us=90, range_us=10, train_us=5000).host(),)), None, "made up")
    assert not analysis.verdict.is_input_bound
    assert analysis.verdict.level == "none"


def test_function_work_and_ops_belong_to_the_map() -> None:
    pipeline = pipeline_of(map_after_prefetch(map_us=900, range_us=100))
    map_ = next(it for it in pipeline.iterators if it.name == "Map")
    assert map_.function_ns == 20 * 900_000
    assert [(op.op, op.count, op.total_ns) for op in map_.ops] == [("DecodeJpeg", 20, 20 * 900_000)]
    assert map_.busy_ns == map_.function_ns, "waiting for its function is no work of its own"


def test_a_function_that_waits_for_the_pool_is_not_to_blame_but_the_one_that_runs() -> None:
    """A filter's own function is quick; a parallel map's functions have all the pool's threads while it is due."""
    profile = Profile()
    root = profile.iterator(1, "Iterator::Root", name="f")
    filter_ = profile.iterator(2, "Iterator::Root::Filter", root, "f")
    map_ = profile.iterator(3, "Iterator::Root::Filter::ParallelMapV2", filter_, "m", parallelism=2)
    source = profile.iterator(4, "Iterator::Root::Filter::ParallelMapV2::Range", map_, "r")
    for element in range(20):
        at = element * 1000
        profile.call("python", root, at, at + 999)
        profile.call("python", filter_, at, at + 999)
        profile.call("python", map_, at, at + 5)
        profile.produce("runner", "ParallelMap", element, at, at + 4)
        profile.call("runner", source, at, at + 2)
        profile.function("runner", 1000 + element, at + 2, at + 4)
        profile.executor("pool", 1000 + element, at + 4, at + 950)
        profile.function("python", 2000 + element, at + 6, at + 999)
        profile.executor("pool", 2000 + element, at + 951, at + 998)
    shares = blame(pipeline_of(profile))
    assert shares["ParallelMapV2"] > 0.9
    assert shares["Filter"] == pytest.approx(0.05, abs=0.02)


def parallel_map(*, fetch_us: int, function_us: int, slots: int, elements: int = 60) -> Profile:
    """A ParallelMap: one thread fetches input into free slots, functions run on a pool, the consumer takes in order."""
    profile = Profile()
    root = profile.iterator(1, "Iterator::Root", name="c1")
    map_ = profile.iterator(2, "Iterator::Root::ParallelMapV2", root, "c1", parallelism=slots)
    source = profile.iterator(3, "Iterator::Root::ParallelMapV2::Range", map_, "c0")
    fetched, asked = 0, 0
    free = [0] * slots
    for element in range(elements):
        slot = element % slots
        begin = max(fetched, free[slot])
        fetched = begin + fetch_us
        profile.produce("runner", "ParallelMap", element, begin, fetched + 1)
        profile.call("runner", source, begin, fetched)
        profile.function("runner", element + 1, fetched, fetched + 1)
        fetched += 1
        free[slot] = fetched + function_us
        profile.executor(f"pool{slot}", element + 1, fetched, free[slot])
        got = max(asked + 1, free[slot])
        profile.call("python", root, asked, got)
        profile.call("python", map_, asked, got)
        profile.consume("python", "ParallelMap", element, got)
        asked = got
    return profile


@pytest.mark.parametrize(
    ("fetch_us", "function_us", "slots", "guilty"),
    [
        (1500, 2000, 2, "Range"),  # 1.75 ms an element: 1.5 without the function, 1.0 without the input
        (150, 4000, 2, "ParallelMapV2"),
        (1500, 8000, 2, "ParallelMapV2"),  # fetching takes long too, but the slots are what is short
        (1000, 7000, 16, "Range"),
        (10, 3000, 1, "ParallelMapV2"),
    ],
)
def test_parallel_map_is_blamed_only_when_its_slots_are_short(
    fetch_us: int, function_us: int, slots: int, guilty: str
) -> None:
    shares = blame(pipeline_of(parallel_map(fetch_us=fetch_us, function_us=function_us, slots=slots, elements=300)))
    assert max(shares, key=shares.__getitem__) == guilty, shares


def test_saturated_slots_share_the_blame_with_their_input_by_what_each_removal_would_gain() -> None:
    """Two slots, 1.5 ms to fetch, 4 ms to run: 2.75 ms an element; 1.5 without the function, 2.0 without the input."""
    pipeline = pipeline_of(parallel_map(fetch_us=1500, function_us=4000, slots=2, elements=200))
    shares = blame(pipeline)
    assert shares["Range"] == pytest.approx(0.75 / (0.75 + 1.25), abs=0.03)
    map_ = next(it for it in pipeline.iterators if it.name == "ParallelMapV2")
    assert map_.has_saturated_calls is True


def test_epochs_are_one_pipeline_and_the_gap_between_them_is_no_step() -> None:
    profile = map_after_prefetch(map_us=900, range_us=100, steps=10)
    second = map_after_prefetch(map_us=900, range_us=100, steps=10, first_id=2**63 + 500)
    late = 1_000_000
    profile.iterators.update(second.iterators)
    for name, rows in second.threads.items():
        shifted = [(a + late * 1000, b + late * 1000, k, label, key, link) for a, b, k, label, key, link in rows]
        profile.threads[name] += shifted
    analysis = analyse(Trace((profile.host(),)), None, "made up")
    assert len(analysis.pipelines) == 1
    pipeline = analysis.pipelines[0]
    assert [it.instances for it in pipeline.iterators] == [2, 2, 2, 2]
    assert pipeline.steps is not None
    assert pipeline.steps.count == 18
    assert pipeline.steps.p95_ns < 2_000_000


def test_steps_whose_producers_were_lost_are_left_out_and_told() -> None:
    """Of the first epoch only the consumer's events are there, as TensorFlow 2.16 writes it."""
    profile = map_after_prefetch(map_us=900, range_us=100, steps=20)
    lost = map_after_prefetch(map_us=900, range_us=100, steps=20, first_id=2**63 + 500)
    profile.iterators.update({i: facts for i, facts in lost.iterators.items() if facts.long_name.count("::") <= 2})
    early = [(a - 10**9, b - 10**9, k, label, key, link) for a, b, k, label, key, link in lost.threads["python"]]
    profile.threads["python"] = early + profile.threads["python"]
    pipeline = pipeline_of(profile)
    assert pipeline.steps is not None
    assert pipeline.steps.count == 19
    assert blame(pipeline)["Map"] == pytest.approx(0.9, abs=0.02)
    assert pipeline.notes == ("Only 19 of 38 steps are used: no producer was recorded during the others.",)
