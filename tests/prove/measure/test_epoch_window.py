"""Windows of whole epochs, and the time per step over them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.calls import UNKNOWN_CARDINALITY
from advisor.model.recording import Consumer, Host, Loop, Recording, ScriptExit, StepSeries, Window
from advisor.prove.measure.epoch_window import epoch_window
from advisor.prove.measure.run_steps import RunSteps, steps_of
from advisor.prove.measure.steady_state import UnknownEpoch
from advisor.testing import batch, map_, pipeline, source

MS = 1_000_000


def made(elements=320, epochs=50, making_ms=500):
    return pipeline(
        source("Range", elements=elements),
        map_("decode", ms=1),
        batch(32),
        consumer_ms=10,
        epochs=epochs,
        making_ms=making_ms,
    ).analysis


def test_a_window_holds_whole_epochs_and_follows_at_least_one():
    window = epoch_window(made())
    assert window.warmup % 10 == 0 and window.warmup >= 10
    assert window.steps == 10 * window.epochs and window.epochs >= 3
    assert epoch_window(made(), least_warmup=35).warmup >= 40


def test_slow_epochs_are_three():
    window = epoch_window(made(elements=64_000))
    assert (window.warmup, window.epochs) == (2_000, 3)
    assert window.seconds == pytest.approx(4 * (2_000 * 0.010 + 0.5)), "four epochs, each with 0.5 s of making"


def test_a_short_script_is_measured_as_far_as_it_goes():
    analysis = made()
    (pipe,) = analysis.pipelines
    consumer = replace(pipe.consumer, loops=(Loop(4, "train.py", 3, 9),))
    window = epoch_window(replace(analysis, pipelines=(replace(pipe, consumer=consumer),)))
    assert (window.warmup, window.epochs) == (10, 3)


@pytest.mark.parametrize(("loops", "is_short"), [((), True), ((Loop(50, "train.py", 3, 9),), False), (None, False)])
def test_the_epochs_of_fit_count_where_it_is_in_no_loop(loops, is_short):
    """A `fit` for four epochs that a loop calls fifty times makes more of them."""
    analysis = made(making_ms=1)
    (pipe,) = analysis.pipelines
    consumer = replace(pipe.consumer, kind="keras.fit", loops=loops)
    window = epoch_window(replace(analysis, pipelines=(replace(pipe, consumer=consumer),), keras={"epochs": 4}))
    assert (window.epochs == 3) is is_short and (window.epochs > 10) is not is_short


def test_an_unknown_epoch_is_not_guessed():
    with pytest.raises(UnknownEpoch):
        epoch_window(made(elements=UNKNOWN_CARDINALITY))


def recording(closed_by, datasets=3):
    """Three epochs of two steps of 10 ms, with 30 ms before each epoch."""
    starts = [epoch * 50 * MS + 30 * MS + step * 10 * MS for epoch in range(3) for step in range(2)]
    series = StepSeries("c0", tuple(starts), (), tuple(start + 10 * MS for start in starts))
    window = Window(0, 150 * MS, 0, 6, closed_by)
    consumer = Consumer("c0", "tfadv_1", "for", None, is_main=True, datasets=datasets)
    return Recording(
        "train.py", Host("h", 2, 2, 1, 1), ScriptExit("stopped"), consumers=(consumer,), steps=(series,), window=window
    )


def test_the_time_between_epochs_counts_if_asked_for():
    assert steps_of(recording("steps")) == RunSteps(10 * MS, None, 6, None, datasets=3)
    assert steps_of(recording("steps"), is_with_gaps=True).step_ns == 25 * MS
    assert (
        steps_of(recording("script ended"), is_with_gaps=True).step_ns == 20 * MS
    )  # what follows the last step is not the loop's
