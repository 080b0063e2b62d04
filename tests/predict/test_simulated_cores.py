"""Verdicts, bottlenecks and predictions on machines of 2 to 128 cores, against an event simulator that knows the truth."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from advisor.graph import analyse
from advisor.model.pipeline import Analysis, Iterator
from advisor.model.recording import Host
from advisor.model.trace import Trace
from advisor.model.window_readings import Usage
from advisor.predict.operational import predict_speedup
from advisor.predict.parallel_scaling import predict_parallel
from tests.effort import examples
from tests.predict import event_simulator
from tests.predict.event_simulator import Costs, Outcome

MANY_CORES = (2, 16, 64, 128)
AS_COSTLY = 1.25
"""Two changes whose gains differ by less than this factor: either may be called the bottleneck. Random pipelines may gain
so much more or less than the ends of the predicted range (docs/what-did-not-work.md)."""

simulate = cache(event_simulator.simulate)
"""No test changes an outcome, and several start from the same costs."""


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
    assert_right(Costs(cores, source=source, function=function, calls=round(calls * cores), step=50))


@pytest.mark.parametrize("cores", [16, 64, 128])
@pytest.mark.parametrize("source", [400, 12_000])
def test_the_bottleneck_of_an_interleave_is_its_sources_or_what_follows(cores, source):
    """Eight slots make an element in an eighth of the time; the map, with as many calls as cores, in 6 ms by their number."""
    assert_right(Costs(cores, source=source, function=6_000, calls=cores // 4, step=50, cycle=8, hand_over=5))


@st.composite
def pipelines(draw: st.DrawFn) -> Costs:
    cores = draw(st.sampled_from([16, 64, 128]))
    cycle = draw(st.sampled_from([0, 4, 8]))
    return Costs(
        cores,
        source=draw(st.integers(10, 1_000)) * max(1, cycle),
        function=draw(st.integers(500, 20_000)),
        calls=round(draw(st.sampled_from([0, 0.25, 0.5, 1.0])) * cores),
        batch=draw(st.sampled_from([4, 8, 16])),
        step=draw(st.integers(50, 2_000)),
        cycle=cycle,
    )


@pytest.mark.parametrize(("calls", "function"), [(0, 500), (0, 700), (0, 900), (16, 500), (16, 700)])
def test_busy_slots_of_an_interleave_set_the_pace_of_the_map_that_follows(calls, function):
    """Its sources take 1 ms per element in four slots; the map works for most of that time, and would only wait longer."""
    costs = Costs(64, source=4_000, function=function * max(1, calls), calls=calls, batch=4, step=50, cycle=4)
    gains = [
        simulate(costs).step_us / simulate(replace(costs, **{part: 0.01})).step_us for part in ("source", "function")
    ]
    assert gains[0] > 1.05 > gains[1], "the simulation is as intended"
    main = analysed(costs, simulate(costs)).main
    assert main is not None and main.bottleneck is not None
    assert main.iterator(main.bottleneck.iterator_id).name == "Range"


@pytest.mark.parametrize("calls", [0, 16])
def test_a_map_that_is_busier_than_the_interleave_before_it_sets_the_pace_itself(calls):
    costs = Costs(64, source=4_000, function=1_500 * max(1, calls), calls=calls, batch=4, step=50, cycle=4)
    main = analysed(costs, simulate(costs)).main
    assert main is not None and main.bottleneck is not None
    assert main.iterator(main.bottleneck.iterator_id).name in ("Map", "ParallelMapV2")


@settings(max_examples=examples(12), phases=[Phase.generate])
@given(pipelines())
def test_random_pipelines(costs):
    """The bottleneck is right, and what a quarter of its cost gains is in the predicted range."""
    assert_right(costs)


def assert_right(costs: Costs) -> None:
    """Check the named bottleneck against runs without each of the costs, and what is predicted for a quarter of its cost."""
    truth = simulate(costs)
    gains = {
        "source": truth.step_us / simulate(replace(costs, source=0.01)).step_us,
        "map": truth.step_us / simulate(replace(costs, function=0.01)).step_us,
    }
    analysis = analysed(costs, truth)
    main = analysis.main
    assert main is not None
    if truth.wait_share < 0.1:
        return  # there is no bottleneck in the pipeline
    assert main.bottleneck is not None
    guilty = main.iterator(main.bottleneck.iterator_id)
    if max(gains.values()) < AS_COSTLY:
        return  # handing over and copying take the time
    if truth.step_us / costs.batch < 2 * (costs.hand_over + costs.copy):
        return  # handing over, which the parallel map does, takes most of the time of an element
    if truth.busy_cores > 0.9 * costs.cores:
        return  # the cores are the bottleneck, and every part of the work takes them
    named_part = {"Range": "source", "Map": "map", "ParallelMapV2": "map"}.get(guilty.name, guilty.name)
    assert gains.get(named_part, 0.0) * AS_COSTLY >= max(gains.values()), (guilty.name, gains)
    if "sets the pace" in main.bottleneck.why:
        return  # predictions rest on the shares of the wait, and are too low then (docs/what-did-not-work.md)
    cheaper = (
        replace(costs, source=costs.source / 4)
        if named_part == "source"
        else replace(costs, function=costs.function / 4)
    )
    left = simulate(cheaper).step_us
    if left / costs.batch < 2 * (costs.hand_over + costs.copy):
        return  # handing over and copying then take most of the time of an element, and their overlap is chance
    gain = truth.step_us / left
    factor = {guilty.id: 1 / 4}
    predicted = predict_speedup(analysis, main, factor, factor)
    assert predicted is not None
    assert predicted.low / AS_COSTLY <= gain <= predicted.high * AS_COSTLY, (predicted, gain, named_part)


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
