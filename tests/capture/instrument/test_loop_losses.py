"""The losses of a loop outside Keras: which value of a step counts, and where following it ends."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.keras_models import MAX_BATCHES
from advisor.capture.instrument.loop_losses import GRADIENT, RETURNED, LoopLosses


class Number(float):
    """A tensor with one number."""

    dtype, shape = SimpleNamespace(is_floating=True), SimpleNamespace(rank=0)


COUNT, VECTOR = Number(3), Number(4)
COUNT.dtype, VECTOR.shape = SimpleNamespace(is_floating=False), SimpleNamespace(rank=1)


class Steps:
    """A loop in which steps begin."""

    def __init__(self):
        self.consumer, self.losses, self.now = ConsumerSteps("c1", "for", None, None), LoopLosses(), 0

    def step(self, *values, source=GRADIENT):
        self.now += 10
        self.consumer.open_since_ns = self.now
        for value in values:
            self.losses.note(self.consumer, value, source)


@pytest.fixture
def loop():
    return Steps()


def test_the_mean_so_far_is_reported(loop):
    for value in (4.0, 2.0, 3.0):
        loop.step(Number(value))
    assert loop.losses.read() == ((1, 4.0), (2, 3.0), (3, 3.0))
    assert loop.losses.source == GRADIENT


def test_the_first_gradient_of_a_step_counts(loop):
    loop.step(Number(1.0), Number(100.0))
    loop.step(Number(3.0), Number(100.0))
    assert loop.losses.read() == ((1, 1.0), (2, 2.0))


def test_only_the_first_loop_is_followed_and_only_in_its_steps(loop):
    loop.step(Number(1.0))
    other = ConsumerSteps("c2", "for", None, None)
    other.open_since_ns = 1000
    loop.losses.note(other, Number(50.0), GRADIENT)
    loop.consumer.open_since_ns = 0
    loop.losses.note(loop.consumer, Number(60.0), GRADIENT)
    loop.losses.note(None, Number(70.0), GRADIENT)
    assert loop.losses.read() == ((1, 1.0),)


def test_a_loop_inside_a_function_has_no_steps(loop):
    loop.consumer.is_loop = True
    loop.step(Number(1.0))
    assert loop.losses.read() == ()


@pytest.mark.parametrize(
    ("returned", "loss"),
    [
        (Number(2.0), 2.0),
        ((Number(2.0), COUNT, VECTOR), 2.0),
        ({"loss": Number(2.0), "accuracy": Number(0.5)}, 2.0),
        ({"mean": Number(2.0), "steps": COUNT}, 2.0),
        ((Number(2.0), Number(0.5)), None),  # either may be the loss
        (VECTOR, None),
        (None, None),
        (2.0, None),
    ],
)
def test_what_a_function_returns_is_the_loss_if_it_is_the_only_number(returned, loss, loop):
    loop.step(returned, source=RETURNED)
    loop.step(Number(9.0), source=RETURNED)
    assert loop.losses.read()[:1] == (() if loss is None else ((1, loss),))
    assert len(loop.losses.read()) == (0 if loss is None else 2)


def test_a_loss_of_another_kind_ends_the_curve(loop):
    loop.step(Number(1.0))
    loop.step(Number(2.0), source=RETURNED)
    loop.step(Number(3.0))
    assert loop.losses.read() == ((1, 1.0),)


def test_a_loss_that_is_no_number_any_more_is_none(loop):
    for value in (1.0, math.inf, 2.0):
        loop.step(Number(value))
    assert loop.losses.read() == ((1, 1.0), (2, None), (3, None))


def test_a_bounded_number_of_steps_is_followed(loop):
    for _ in range(MAX_BATCHES + 5):
        loop.step(Number(1.0))
    assert len(loop.losses.read()) == MAX_BATCHES
