"""What steps without input tell about a change, by hand-computed steps of 20 ms of training and 80 ms of waiting."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.recording import Accelerator, Recording, ScriptExit
from advisor.predict.demand import demands
from advisor.predict.idle_consumer import consumer_factors, idle_step_ns, with_idle_consumer
from tests.predict.test_operational import BEHIND, MS, analysis, predict

NOTHING = dict.fromkeys(("p0.2", "p0.3"), 0.0)
"""No cost, or no work, of the map and the source."""


def timed(*idle_ms, **more):
    """The analysis of a run whose steps took so long without input."""
    made = analysis(*BEHIND, consumer_ms=20, wait_ms=80, busy_cores=1, **more)
    recording = Recording("train.py", made.host, ScriptExit("stopped"), idle_step_ns=tuple(ms * MS for ms in idle_ms))
    return dataclasses.replace(made, recording=recording)


def test_without_work_of_the_pipeline_a_step_is_as_short_as_without_input():
    assert predict(timed(), NOTHING, NOTHING).value == pytest.approx(5.0)
    rested = predict(timed(*[8] * 30), NOTHING, NOTHING)
    assert rested.value == pytest.approx(100 / 8)
    assert rested.low == pytest.approx(predict(timed(), NOTHING, NOTHING).low)  # at worst, it stays as it is


def test_work_that_only_moves_frees_nothing():
    assert predict(timed(*[8] * 30), NOTHING).value == predict(timed(), NOTHING).value


@pytest.mark.parametrize(("left", "expected_ms"), [(1.0, 40.0), (0.5, 28.0), (0.0, 16.0)])
def test_cpu_time_beyond_that_of_a_step_without_input_goes_with_the_work(left, expected_ms):
    """Two cores have 16 ms in a step of 8 ms; what the consumer seems to take beside the pipeline is 40 ms."""
    made = timed(*[8] * 30)
    measured = demands(made, made.main)
    cores = dataclasses.replace(measured.cores, usable=2.0)
    measured = dataclasses.replace(measured, consumer_cpu_ns=40.0 * MS, cores=cores)
    work = {"p0.0": left, "p0.1": left, "p0.2": left, "p0.3": left}
    assert with_idle_consumer(made, measured, work).consumer_cpu_ns == pytest.approx(expected_ms * MS)
    untimed = timed()
    assert with_idle_consumer(untimed, measured, work) == measured


def test_a_part_of_the_work_frees_that_part():
    made = timed(*[8] * 30)
    measured = demands(made, made.main)
    half = {"p0.0": 1.0, "p0.1": 1.0, "p0.2": 0.5, "p0.3": 0.5}
    assert consumer_factors(made, measured, half) == pytest.approx((1 - 0.6 / 2, 1 - 0.6 / 2))


@pytest.mark.parametrize("times", [(), (8,), (8, 8)])
def test_too_few_steps_tell_nothing(times):
    assert idle_step_ns(timed(*times)) is None
    assert predict(timed(*times), NOTHING, NOTHING).value == pytest.approx(5.0)


def test_steps_that_took_longer_without_input_change_nothing():
    assert predict(timed(*[30] * 30), NOTHING, NOTHING).value == predict(timed(), NOTHING, NOTHING).value


def test_no_prediction_exceeds_a_measured_ceiling():
    """The floor of a step is the measured one: it is not divided by what the consumer gains once more."""
    made = timed(*[8] * 30)
    verdict = dataclasses.replace(made.verdict, max_speedup=12.5, is_ceiling_measured=True)
    prediction = predict(dataclasses.replace(made, verdict=verdict), NOTHING, NOTHING)
    assert prediction.value == pytest.approx(12.5) and prediction.high == pytest.approx(12.5)


def test_a_consumer_on_an_accelerator_is_not_affected():
    made = timed(*[8] * 30)
    host = dataclasses.replace(made.host, accelerators=(Accelerator("GPU", "a"),))
    made = dataclasses.replace(made, host=host, recording=dataclasses.replace(made.recording, host=host))
    assert predict(made, NOTHING, NOTHING).high == pytest.approx(5.0)
