"""Whether a script fixes its random numbers, on real recordings."""

from __future__ import annotations

import pytest


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda tf, x: tf.random.uniform([]), False),
        (lambda tf, x: tf.random.uniform([], seed=3), True),
        (lambda tf, x: tf.image.random_flip_left_right(tf.zeros([2, 2, 3]), seed=1), True),
        (lambda tf, x: tf.random.stateless_uniform([], [1, 2]), False),
        (lambda tf, x: x + 1, False),
    ],
)
def test_a_seeded_op_is_recorded(draw, expected, recorded):
    import tensorflow as tf

    tf.data.Dataset.range(3).map(lambda x: draw(tf, x))
    facts = recorded.call("map").function
    assert facts is not None
    assert facts.is_seeded is expected


@pytest.mark.tensorflow
def test_a_generator_may_have_a_seed(recorded):
    import tensorflow as tf

    generator = tf.random.Generator.from_seed(3)
    tf.data.Dataset.range(3).map(lambda x: generator.uniform([]))
    facts = recorded.call("map").function
    assert facts is not None
    assert facts.is_seeded


@pytest.mark.tensorflow
def test_the_global_seed_shows_in_every_random_op(recorded):
    import tensorflow as tf
    from tensorflow.python.eager import context

    try:
        tf.random.set_seed(5)
        tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([]))
    finally:
        context.context()._seed = None  # as if it had never been called
    facts = recorded.call("map").function
    assert facts is not None
    assert facts.is_seeded
