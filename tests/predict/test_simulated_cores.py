"""Verdicts, bottlenecks and predictions on machines of 2 to 128 cores, against an event simulator that knows the truth."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph import analyse
from advisor.model.pipeline import Analysis, Iterator
from advisor.model.recording import Host, Usage
from advisor.model.trace import Trace
from advisor.predict.operational import predict_speedup
from advisor.predict.parallel_scaling import predict_parallel
from tests.predict.event_simulator import Costs, Outcome, simulate

MANY_CORES = (2, 16, 64, 128)


def analysed(costs: Costs, outcome: Outcome) -> Analysis:
    """The analysis of the run's timeline, with the machine and its use as a recording would tell them."""
    analysis = analyse(Trace((outcome.profile.host(),)), None, "simulated")
    wall_ns = round(outcome.wall_us * 1_000)
    host = Host("simulated", costs.cores, costs.cores, 1 << 36, 1 << 35)
    return replace(analysis, host=host, usage=Usage(wall_ns, round(wall_ns * outcome.busy_cores)))


def named(analysis: Analysis, *names: str) -> Iterator:
    assert analysis.main is not None
    return next(iterator for iterator in analysis.main.iterators if iterator.name in names)


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize("own_share", [0.3, 0.7, 2.0])
def test_the_wait_is_the_simulated_one(cores, own_share):
    """The consumer's own time is this share of the time that the pipeline needs for a batch."""
    costs = Costs(cores, source=30, function=4_000, calls=cores, step=0)
    costs = replace(costs, step=own_share * simulate(costs).step_us)
    outcome = simulate(costs)
    assert outcome.wait_share == pytest.approx(max(0.0, 1 - own_share), abs=0.1), "the simulation is as intended"
    verdict = analysed(costs, outcome).verdict
    assert verdict.input_wait_share == pytest.approx(outcome.wait_share, abs=0.03)
    assert verdict.is_input_bound is (own_share < 1)


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize(
    ("source", "function", "calls"),
    [(20, 6_000, 0), (400, 1_000, 0), (900, 2_000, 1.0), (10, 6_000, 0.25), (5, 6_000, 1.0)],
)
def test_the_bottleneck_is_what_gains_most_if_it_is_removed(cores, source, function, calls):
    costs = Costs(cores, source=source, function=function, calls=round(calls * cores), step=50)
    truth = simulate(costs)
    gains = {
        "Range": truth.step_us / simulate(replace(costs, source=0.01)).step_us,
        "Map": truth.step_us / simulate(replace(costs, function=0.01)).step_us,
    }
    best, second = sorted(gains.values(), reverse=True)
    if best < 1.25 * second:
        pytest.skip("both are about as costly")
    wanted = ("Range",) if gains["Range"] == best else ("Map", "ParallelMapV2")
    analysis = analysed(costs, truth)
    assert analysis.main is not None and analysis.main.bottleneck is not None
    assert analysis.main.iterator(analysis.main.bottleneck.iterator_id).name in wanted, gains


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize("function", [1_000, 8_000])
@pytest.mark.parametrize("step", [50, 4_000])
def test_more_threads_gain_what_is_predicted(cores, function, step):
    """A sequential map becomes parallel with as many calls as there are cores."""
    costs = Costs(cores, source=20, function=function, calls=0, step=step)
    before, after = simulate(costs), simulate(replace(costs, calls=cores))
    analysis = analysed(costs, before)
    assert analysis.main is not None
    predicted = predict_parallel(analysis, analysis.main, [named(analysis, "Map")], 1, cores)
    assert predicted is not None
    assert within(predicted.low, before.step_us / after.step_us, predicted.high)


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize("calls", [0.25, 1.0])
def test_a_cheaper_function_gains_what_is_predicted(cores, calls):
    costs = Costs(cores, source=20, function=6_000, calls=round(calls * cores) or 1)
    before, after = simulate(costs), simulate(replace(costs, function=2_000))
    analysis = analysed(costs, before)
    assert analysis.main is not None
    factor = {named(analysis, "ParallelMapV2").id: 1 / 3}
    predicted = predict_speedup(analysis, analysis.main, factor, factor)
    assert predicted is not None
    assert within(predicted.low, before.step_us / after.step_us, predicted.high)


def test_busy_cores_are_shared():
    """Twice the calls on busy cores are no faster, and the simulator knows that without being told."""
    some, twice = (simulate(Costs(4, source=5, function=3_000, calls=calls)) for calls in (4, 8))
    assert twice.step_us == pytest.approx(some.step_us, rel=0.1)
    assert some.busy_cores > 3


def within(low: float, value: float, high: float) -> bool:
    """Whether the truth is in the predicted range, or off by no more than a simulation of 30 steps is."""
    return low * 0.95 <= value <= high * 1.05
