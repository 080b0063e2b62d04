"""The best set of changes: what it must hold, and what no plan may do."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.host.calibration.prediction import MEMORY_SHARE, WORTH_MORE
from advisor.model.calls import Call
from advisor.model.finding import Effect, Finding, Fix, Prediction, Safety
from advisor.model.pipeline import Analysis
from advisor.model.recording import Consumer, Recording, ScriptExit
from advisor.predict import predict_speedup
from advisor.predict.best_plan import outlook, service_workers
from advisor.predict.demand import demands
from advisor.predict.operational import combined_factors
from tests.predict.test_operational import BEHIND, MS, STEPS, analyses, analysis, iterator

GIB = 1 << 30


def finding(
    made: Analysis, title: str, cost: dict[str, float], work: dict[str, float] | None = None, memory: int | None = 0
):
    gain = predict_speedup(made, made.main, cost, work or {})
    return Finding("a-rule", title, "", prediction=gain, memory_bytes=memory, fix=Fix((), Safety.EXACT, True))


def plan_of(made: Analysis, *findings: Finding):
    result = outlook(made, made.main, findings, findings)
    assert result is not None
    return result.plan


def with_memory(made: Analysis, free: int) -> Analysis:
    return dataclasses.replace(made, host=dataclasses.replace(made.host, memory_free_bytes=free))


@pytest.fixture
def made():
    return with_memory(analysis(*BEHIND, consumer_ms=20, wait_ms=80, cores=2, busy_cores=1.2), 10 * GIB)


def test_changes_of_different_iterators_are_taken_together(made):
    first = finding(made, "map", {"p0.2": 0.2}, {"p0.2": 0.2})
    second = finding(made, "source", {"p0.3": 0.2}, {"p0.3": 0.2})
    plan = plan_of(made, second, first)
    assert plan.findings == (0, 1)
    assert plan.prediction.value == pytest.approx(
        5.0
    )  # 20 ms of 100 are left in both, as long as the consumer's own time
    assert "1 and 2 together" in plan.sentence


def test_fixes_made_pointless_by_a_cache_are_omitted(made):
    parallel = finding(made, "parallel", {"p0.2": 0.5})
    cache = finding(made, "cache", {"p0.2": 0.0, "p0.3": 0.0}, {"p0.2": 0.0, "p0.3": 0.0}, memory=GIB)
    plan = plan_of(made, parallel, cache)
    assert plan.findings == (1,)
    assert plan.memory_bytes == GIB
    assert plan.limit.resource == "consumer" and plan.limit_speedup == pytest.approx(5.0)
    assert "the consumer itself is the limit, at 5.0x" in plan.sentence


@pytest.mark.parametrize("memory", [9 * GIB, None], ids=["too much", "unknown"])
def test_fixes_that_may_not_fit_are_not_part_of_a_plan(made, memory):
    parallel = finding(made, "parallel", {"p0.2": 0.5})
    cache = finding(made, "cache", {"p0.2": 0.0, "p0.3": 0.0}, {"p0.2": 0.0, "p0.3": 0.0}, memory=memory)
    assert plan_of(made, cache, parallel).findings == (1,)
    assert plan_of(made, cache) is None


def test_two_that_fit_alone_and_not_together_are_not_taken_together(made):
    both = [finding(made, name, {i: 0.2}, {i: 0.2}, memory=5 * GIB) for name, i in (("a", "p0.2"), ("b", "p0.3"))]
    assert len(plan_of(made, *both).findings) == 1
    assert len(plan_of(with_memory(made, 20 * GIB), *both).findings) == 2


def test_of_two_ways_to_spread_the_same_work_the_wider_counts():
    cost, work = combined_factors([Effect("a", 0.5), Effect("a", 0.25), Effect("b", 0.1, 0.2), Effect("b", 0.5, 0.5)])
    assert cost == {"a": 0.25, "b": pytest.approx(0.05)} and work == {"a": 1.0, "b": pytest.approx(0.1)}


def test_the_lock_is_named_when_it_limits_what_is_left():
    nodes = (
        iterator(0, "Root", None, 0.0),
        iterator(1, "MapAndBatch", 0, 1.0, 100, parallelism=1, python_ns=40 * MS * STEPS),
    )
    busy = analysis(*nodes, consumer_ms=10, wait_ms=90, cores=8, busy_cores=1.1)
    plan = plan_of(busy, finding(busy, "parallel", {"p0.1": 0.125}))
    assert plan.limit.resource == "gil"
    assert plan.prediction.value == pytest.approx(2.5, rel=0.01)
    assert "Then the GIL is the limit, at 2.5x." in plan.sentence
    assert plan.service_workers == 4  # 40 ms under the lock for each 10 ms of the consumer
    assert "at least 4 tf.data service workers" in plan.sentence


def test_a_pipeline_alone_has_no_training_that_other_machines_could_feed():
    nodes = (iterator(0, "Root", None, 0.0), iterator(1, "MapAndBatch", 0, 1.0, 100, parallelism=1))
    full = analysis(*nodes, consumer_ms=10, wait_ms=90, cores=2, busy_cores=1.1)
    change = finding(full, "parallel", {"p0.1": 0.5})
    assert plan_of(full, change).service_workers == 5
    recording = Recording("train.py", full.host, ScriptExit("stopped"), is_pipeline_alone=True)
    assert plan_of(dataclasses.replace(full, recording=recording), change).service_workers is None


def test_number_of_workers_is_the_work_divided_by_that_of_one_host():
    full = analysis(*BEHIND, consumer_ms=10, wait_ms=90, cores=1, busy_cores=1)
    demand = demands(full, full.main)
    assert service_workers(demand) == math.ceil(demand.cpu_ns / demand.consumer_ns - 1e-6)
    assert service_workers(dataclasses.replace(demand, consumer_ns=0.0)) is None
    assert service_workers(dataclasses.replace(demand, consumer_ns=1e-3)) is None


def test_nothing_found_is_no_plan_but_limits(made):
    result = outlook(made, made.main, (), ())
    assert result.plan is None and result.limits[0].iterator_id == "p0.2"
    assert result.memory_room_bytes == int(MEMORY_SHARE.value * 10 * GIB)


def test_without_steps_there_is_no_outlook(made):
    assert outlook(made, dataclasses.replace(made.main, span_ns=0), (), ()) is None


@st.composite
def changes(draw):
    made = draw(analyses())
    ids = [it.id for it in made.main.iterators]
    findings = []
    for number in range(draw(st.integers(0, 4))):
        cost = dict(zip(ids, draw(st.lists(st.floats(0, 1), min_size=len(ids), max_size=len(ids))), strict=True))
        work = cost if draw(st.booleans()) else {}
        findings.append(finding(made, str(number), cost, work, draw(st.none() | st.integers(0, 4 * GIB))))
    return made, findings


@settings(deadline=None)
@given(changes(), st.integers(0, 8 * GIB), st.integers(0, 8 * GIB))
def test_a_plan_fits_and_more_memory_never_makes_it_worse(case, small, more):
    made, findings = case
    poor, rich = with_memory(made, small), with_memory(made, small + more)
    before, after = plan_of(poor, *findings), plan_of(rich, *findings)
    for plan, free in ((before, small), (after, small + more)):
        if plan is not None:
            chosen = [findings[place] for place in plan.findings]
            assert all(finding.memory_bytes is not None for finding in chosen)
            assert sum(finding.memory_bytes for finding in chosen) == plan.memory_bytes <= MEMORY_SHARE.value * free
            assert plan.prediction.low <= plan.prediction.value <= plan.prediction.high
    if before is not None:
        assert after is not None and after.prediction.value * WORTH_MORE.value >= before.prediction.value


@settings(deadline=None)
@given(changes())
def test_a_plan_is_no_worse_than_any_single_change(case):
    made, findings = case
    rich = with_memory(made, 1 << 50)
    alone = [
        finding.prediction.value for finding in findings if finding.prediction and finding.memory_bytes is not None
    ]
    best = max(alone, default=1.0)
    plan = plan_of(rich, *findings)
    assert (plan.prediction.value if plan else 1.0) * WORTH_MORE.value >= best * (1 - 1e-9)


def test_a_prediction_carries_what_it_was_made_from(made):
    gain = predict_speedup(made, made.main, {"p0.2": 0.5}, {"p0.3": 0.1})
    assert set(gain.effects) == {Effect("p0.2", 0.5, 1.0), Effect("p0.3", 1.0, 0.1)}
    assert gain == Prediction(gain.value, gain.low, gain.high)


def test_a_plan_is_no_surer_than_the_rules_it_is_made_of(made):
    model = predict_speedup(made, made.main, {"p0.2": 0.2}, {"p0.2": 0.2})
    guess = dataclasses.replace(
        finding(made, "guess", {"p0.2": 0.2}), prediction=dataclasses.replace(model, value=1.5, low=1.0)
    )
    plan = plan_of(made, guess)
    assert model.value > 2
    assert plan.prediction.value == pytest.approx(1.5, rel=0.05) and plan.prediction.low == 1.0
    assert plan.limit_speedup >= plan.prediction.value
    sure = finding(made, "sure", {"p0.3": 0.1}, {"p0.3": 0.1})
    both = plan_of(made, guess, sure)
    assert both.findings == (0, 1)
    assert sure.prediction.low <= both.prediction.low <= both.prediction.value


def over(made: Analysis, epochs: int | None) -> Analysis:
    """The same of a script with this number of epochs."""
    call = Call("c0", "map", None, cardinality=10)
    consumer = Consumer("reader", "c0", "for", None, iterators=epochs or 1)
    end = ScriptExit("stopped" if epochs is None else "finished")
    recording = Recording("train.py", made.host, end, calls=(call,), consumers=(consumer,))
    main = dataclasses.replace(made.main, consumer=consumer)
    return dataclasses.replace(made, recording=recording, calls=(call,), pipelines=(main,))


def delayed(undelayed: Finding) -> Finding:
    return dataclasses.replace(undelayed, prediction=dataclasses.replace(undelayed.prediction, first_pass=1.0))


@pytest.mark.parametrize(("epochs", "chosen"), [(2, (0, 1)), (1000, (1,)), (None, (1,))])
def test_a_short_run_also_takes_what_helps_its_first_epoch(made, epochs, chosen):
    made = over(made, epochs)
    parallel = finding(made, "parallel", {"p0.2": 0.5})
    cache = delayed(finding(made, "cache", {"p0.2": 0.0, "p0.3": 0.0}, {"p0.2": 0.0, "p0.3": 0.0}, memory=GIB))
    plan = plan_of(made, parallel, cache)
    assert plan.findings == chosen
    assert plan.prediction.value == pytest.approx(cache.prediction.value)  # that of a step in later epochs, as measured


def test_the_gain_of_a_plan_over_the_run(made):
    made = over(made, 2)
    parallel = finding(made, "parallel", {"p0.2": 0.5})
    cache = delayed(finding(made, "cache", {"p0.2": 0.0, "p0.3": 0.0}, {"p0.2": 0.0, "p0.3": 0.0}, memory=GIB))
    plan = plan_of(made, parallel, cache)
    expected = 2 / (1 / parallel.prediction.value + 1 / cache.prediction.value)
    assert plan.over_run.prediction.value == pytest.approx(expected)
    assert "over the 2 epochs of this run" in plan.sentence
    assert "from the second epoch on" in plan_of(over(made, None), cache).sentence
    assert "epoch" not in plan_of(made, parallel).sentence
