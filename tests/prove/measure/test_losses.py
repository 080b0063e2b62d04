"""Losses of alternating runs, side by side, with how far they are apart."""

from __future__ import annotations

import dataclasses
import math

import pytest

from advisor.capture.request import START_SEED, CaptureRequest
from advisor.model.outcome import LossDeviation, LossPoint
from advisor.prove.measure.end_to_end import time_run
from advisor.prove.measure.losses import loss_curve, loss_deviation, note_on
from advisor.prove.measure.run_steps import RunSteps


def runs(*curves: dict[int, float]) -> list[RunSteps]:
    return [RunSteps(1e6, None, 50, 100, losses=tuple(curve.items())) for curve in curves]


def test_the_curves_are_medians_where_all_runs_know_the_loss():
    before = runs({1: 2.0, 2: 1.0, 4: 0.5}, {1: 2.2, 2: 1.2, 4: 0.7}, {1: 2.1, 2: 1.1, 4: 0.6})
    after = runs({2: 3.0, 4: 0.6, 8: 0.1}, {2: 1.0, 4: 0.6, 8: 0.1}, {2: 1.0, 4: 0.8})
    assert loss_curve(before, after) == (LossPoint(2, 1.1, 1.0), LossPoint(4, 0.6, 0.6))


def test_a_side_without_runs_or_losses_has_no_curve():
    known, unknown = runs({1: 1.0}), runs({})
    for before, after in ((known, []), ([], known), (known, unknown), (unknown, known)):
        assert loss_curve(before, after) == ()
        assert loss_deviation(before, after) is None


def test_losses_that_were_seen_at_different_places_are_not_compared():
    known = runs({1: 1.0})
    returned = [dataclasses.replace(run, loss_source="returned") for run in known]
    assert loss_curve(known, returned) == () and loss_curve(returned, returned)


@pytest.mark.parametrize(
    ("relative", "between", "noted"),
    [(0.5, 0.6, False), (0.5, 0.1, True), (0.009, 0.0, False), (0.02, None, True), (math.inf, 0.1, True)],
)
def test_what_chance_and_rounding_do_not_explain_is_noted(relative, between, noted):
    assert bool(note_on(LossDeviation(8, relative, between))) is noted


def test_a_loss_that_is_no_number_any_more_is_named():
    deviation = loss_deviation(runs({1: 1.0, 2: 0.5}), runs({1: 1.0, 2: math.nan}))
    assert deviation is not None and math.isinf(deviation.relative)
    assert note_on(deviation) == "With the change, the loss of the first 2 batches is not always a finite number."


KERAS = """
import keras
import tensorflow as tf

def augment(x):
    return tf.random.normal([64]) + tf.cast(x, tf.float32), tf.cast(x, tf.float32) / 640

data = tf.data.Dataset.range(640).map(augment).batch(8)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-6), "mse")
model.fit(data, epochs=1000, verbose=0)
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_runs_that_start_with_the_same_seeds_have_the_same_losses(tmp_path):
    """The script sets no seeds: weights and elements are random, and the same in both runs."""

    def timed(text, seed):
        script = tmp_path / "train.py"
        script.write_text(text)
        request = CaptureRequest(tmp_path / "run", script, warmup=5, steps=10, start_seed=seed)
        return time_run(request, lambda progress: None)

    first, again, unseeded = timed(KERAS, START_SEED), timed(KERAS, START_SEED), timed(KERAS, None)
    other = timed(KERAS.replace("SGD(1e-6)", "SGD(2e-6)"), START_SEED)
    assert first.losses[0][0] == 1 and len(first.losses) >= 10
    assert note_on(loss_deviation([first, first], [again])) == ""
    assert "the change affects the training" in note_on(loss_deviation([first, again], [other]))
    assert loss_deviation([first], [unseeded]).relative > 0.01


LOOP = """
import tensorflow as tf

data = tf.data.Dataset.range(640).map(lambda x: (tf.cast(x, tf.float32) / 640, x)).batch(8)
weight = tf.Variable(1.0)

{decorator}
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(weight * x - 2 * x))
    weight.assign_sub({rate} * tape.gradient(loss, weight))
    return {{"loss": loss, "weight": tf.identity(weight)}}

for epoch in range(1000):
    for x, _ in data:
        train_step(x)
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_losses_of_a_loop_outside_keras_are_known(tmp_path):
    def timed(decorator="", rate=0.01):
        script = tmp_path / "train.py"
        script.write_text(LOOP.format(decorator=decorator, rate=rate))
        request = CaptureRequest(tmp_path / "run", script, warmup=5, steps=10, start_seed=START_SEED)
        return time_run(request, lambda progress: None)

    eager, traced, faster = timed(), timed("@tf.function"), timed("@tf.function", rate=0.02)
    assert (eager.loss_source, traced.loss_source) == ("gradient", "returned")
    assert [count for count, _ in eager.losses[:3]] == [1, 2, 3] and len(eager.losses) >= 10
    assert dict(eager.losses)[10] == pytest.approx(dict(traced.losses)[10], rel=1e-4)
    assert loss_curve([eager], [traced]) == ()
    assert loss_deviation([traced], [faster]).relative > 1e-3
