"""When more speed of the pipeline alone would gain the training too little, by hand-computed steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.edits import Code, InsertAfter, SetArgument, SetOption
from advisor.model.finding import Finding, Fix, Prediction, Safety
from advisor.model.recording import Recording, ScriptExit
from advisor.prove.search.search_limits import gain_left, is_enough, own_step_s
from advisor.prove.trial.trial_result import FASTER, Trial
from advisor.testing import batch, map_, pipeline, source

ANALYSIS = pipeline(source(), map_("decode", ms=1), batch(10), consumer_ms=20).analysis
OWN_S = 0.020
PARALLEL = SetArgument("map", "num_parallel_calls", Code("tf.data.AUTOTUNE"))


def finding(predicted, edit=PARALLEL):
    prediction = None if predicted is None else Prediction(predicted, predicted, predicted)
    return Finding("made-up", "Do it", "", prediction=prediction, fix=Fix((edit,), Safety.EXACT, is_auto=True))


def trial(pipeline_ms):
    """The pipeline alone takes so long for a step."""
    return Trial(FASTER, rate_after=1000.0 / pipeline_ms)


def test_the_step_has_a_time_of_its_own():
    assert own_step_s(ANALYSIS) == pytest.approx(OWN_S, rel=0.01)


def test_the_step_is_as_short_as_it_was_without_input():
    recording = Recording("train.py", ANALYSIS.host, ScriptExit("stopped"), idle_step_ns=(5_000_000,) * 30)
    assert own_step_s(replace(ANALYSIS, recording=recording)) == pytest.approx(0.005)
    longer = replace(recording, idle_step_ns=(50_000_000,) * 30)
    assert own_step_s(replace(ANALYSIS, recording=longer)) == pytest.approx(OWN_S, rel=0.01)


@pytest.mark.parametrize(("pipeline_ms", "expected"), [(0.9, True), (1.1, False)])
def test_a_pipeline_that_takes_less_than_a_twentieth_of_the_step_is_fast_enough(pipeline_ms, expected):
    assert is_enough(ANALYSIS, trial(pipeline_ms)) is expected


@pytest.mark.parametrize(
    ("pipeline_ms", "predicted", "largest"),
    [
        (2.0, 2.0, 22 / 21),  # one after the other; overlapping, the training is not faster at all
        (40.0, 2.0, 2.0),  # overlapping: the pipeline limits the training until it takes 20 ms
        (30.0, 10.0, 50 / 23),
        (10.0, 1.05, 30 / (20 + 10 / 1.05)),
    ],
)
def test_the_gain_of_a_step_is_bounded_by_what_the_pipeline_saves(pipeline_ms, predicted, largest):
    assert gain_left(ANALYSIS, trial(pipeline_ms), finding(predicted)) == pytest.approx(largest, rel=0.01)


def test_the_high_end_of_a_prediction_counts():
    unsure = replace(finding(1.0), prediction=Prediction(1.0, 1.0, 2.0))
    assert gain_left(ANALYSIS, trial(40.0), unsure) == pytest.approx(2.0, rel=0.01)


def test_a_step_of_several_batches_waits_for_all_of_them():
    several = replace(ANALYSIS, keras={"steps_per_execution": 32})
    assert is_enough(ANALYSIS, trial(0.5)) and not is_enough(several, trial(0.5))


@pytest.mark.parametrize(
    "unknown",
    [
        finding(None),
        finding(1.5, InsertAfter("batch", "prefetch", (("", 1),))),
        finding(1.5, SetOption("batch", "autotune.enabled", True)),
    ],
)
def test_what_saves_time_beside_the_pipeline_is_of_unknown_gain(unknown):
    assert gain_left(ANALYSIS, trial(1.0), unknown) is None


def test_a_prefetch_beside_another_change_leaves_the_gain_known():
    parallel = finding(2.0)
    edits = (*parallel.fix.edits, InsertAfter("map", "prefetch", (("", 1),)))
    both = replace(parallel, fix=replace(parallel.fix, edits=edits))
    assert gain_left(ANALYSIS, trial(1.0), both) == gain_left(ANALYSIS, trial(1.0), parallel) is not None


def test_without_a_rate_nothing_is_known():
    assert gain_left(ANALYSIS, Trial(FASTER), finding(2.0)) is None
    assert not is_enough(ANALYSIS, Trial(FASTER))
