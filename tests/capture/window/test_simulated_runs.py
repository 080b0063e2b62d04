"""The window on simulated machines with 16 to 128 cores: it opens in the steady state, and its mean is the simulator's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.stop_script import StopScript
from advisor.capture.window import monitor as monitor_module
from advisor.model.recording import Window
from tests.capture.window.monitors import quiet_monitor
from tests.predict.event_simulator import Costs, Simulation

BASE = Costs(0, source=20, function=160_000, calls=0, batch=8, step=1_000)
"""A batch takes about 90 ms with 16 calls and 13 ms with 128; the pipeline is always the limit."""
TOLERANCE = 0.05
"""Of the mean, where steps vary evenly: the half width at which the product stops."""
MANY_CORES = (16, 64, 128)
TRUE_STEPS = 400


@dataclass(frozen=True)
class Watched:
    """The window on a simulated run; times in seconds since its start."""

    window: Window
    opened_s: float
    mean_us: float
    """Mean step in the stretch that is timed without the profiler."""
    grown_s: float


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Costs], Watched]:
    """Run the product's own monitor on the clock of a simulation, on a machine with as many cores."""

    def watch(costs: Costs) -> Watched:
        now = start = 10**18
        simulation, consumers = Simulation(costs), Consumers()
        consumer = consumers.at("loop", None, None)
        monkeypatch.setattr("time.time_ns", lambda: now)
        monkeypatch.setattr(monitor_module, "schedulable_cores", lambda: costs.cores)
        monitor = quiet_monitor(tmp_path, consumers)
        monitor.boundary(consumer)
        with pytest.raises(StopScript):
            for end_us in simulation.steps():
                now = start + round(end_us * 1_000)
                monitor.boundary(consumer)
        assert monitor.capture is not None
        window = monitor.capture.window
        unprofiled_us = (window.plain_end_ns - window.plain_start_ns) / 1e3
        opened_s = (window.plain_start_ns - start) / 1e9
        return Watched(window, opened_s, unprofiled_us / window.plain_steps, simulation.grown_us / 1e6)

    return watch


def with_cores(cores: int, **changes: float) -> Costs:
    return replace(BASE, cores=cores, calls=cores, **changes)


@cache
def truth_us(costs: Costs) -> float:
    """The mean of many steps of the steady state, without what happens at the start."""
    steps = Simulation(replace(costs, is_growing=False, shuffle=0), seed=2).steps()
    first = [next(steps) for _ in range(costs.warmup)][-1]
    return ([next(steps) for _ in range(TRUE_STEPS)][-1] - first) / TRUE_STEPS


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize("is_growing", [False, True])
def test_the_mean_of_the_window_is_that_of_the_steady_state(cores, is_growing, watched):
    costs = with_cores(cores, is_growing=is_growing)
    seen = watched(costs)
    assert seen.opened_s > seen.grown_s
    assert seen.mean_us == pytest.approx(truth_us(costs), rel=TOLERANCE)
    assert seen.window.plain_steps >= 20


@pytest.mark.parametrize("cores", MANY_CORES)
@pytest.mark.parametrize("shuffle", [600, 2_600, 5_200])
def test_after_a_shuffle_buffer_was_filled_the_calls_grow_before_the_window_opens(cores, shuffle, watched):
    """It is filled for 0.6, 2.6 and 5.2 s: the next look comes at 0.63, 5.11 and 10.23 s."""
    costs = with_cores(cores, is_growing=True, shuffle=shuffle, source=1_000)
    seen = watched(costs)
    assert seen.opened_s > seen.grown_s
    assert seen.mean_us == pytest.approx(truth_us(costs), rel=TOLERANCE)


def test_a_window_that_opens_before_the_calls_have_grown_measures_the_start():
    """What the tests above would see if the window did not wait: 16 of 64 calls make the pipeline about four times as slow."""
    costs = with_cores(64, is_growing=True, shuffle=5_200, source=1_000)
    simulation = Simulation(costs)
    steps = simulation.steps()
    ends = [next(steps) for _ in range(20)]
    assert simulation.grown_us == 0
    early_us = (ends[-1] - ends[5]) / 14
    assert early_us > 3 * truth_us(costs)


@pytest.mark.parametrize("cores", MANY_CORES)
def test_frequent_checkpoints_are_part_of_the_mean(cores, watched):
    """A pause of 100 ms in every 0.5 s or so: the buffers fill up in it, and the steps after it do not wait."""
    truth = truth_us(with_cores(cores))
    costs = with_cores(cores, pause=100_000, pause_every=round(500_000 / truth))
    seen = watched(costs)
    simulation = Simulation(costs)
    steps = simulation.steps()
    first = [next(steps) for _ in range(2 * costs.pause_every)][-1]
    last = [next(steps) for _ in range(5 * costs.pause_every)][-1]
    assert seen.mean_us == pytest.approx((last - first) / (5 * costs.pause_every), rel=0.1)


@pytest.mark.parametrize("cores", MANY_CORES)
def test_rare_checkpoints_are_not_in_the_mean(cores, watched):
    """A window of a few seconds says nothing about a pause that comes every 20 s: its mean is that of the steps between them."""
    truth = truth_us(with_cores(cores))
    costs = with_cores(cores, pause=1_000_000, pause_every=round(20e6 / truth))
    assert watched(costs).mean_us == pytest.approx(truth, rel=TOLERANCE)
