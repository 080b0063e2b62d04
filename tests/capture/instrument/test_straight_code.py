"""Functions in which AutoGraph converts something, and functions in which it converts nothing: then the graphs are the same."""

from __future__ import annotations

import functools
import math

import pytest

from advisor.capture.instrument.straight_code import is_straight_code

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

SIZE, WEIGHTS, FEATURES = 3, tf.constant([1.0, 2.0, 3.0]), {"x": tf.io.FixedLenFeature([3], tf.float32)}


def helper(x):
    return x if tf.reduce_sum(x) > 0 else -x


class Decoder:
    def decode(self, x):
        return tf.abs(x)


def factor_of(value):
    return lambda x: x * value


def scaled(x):
    """A docstring, constants, several results."""
    mean = tf.reduce_mean(x)
    low, high = x[0], x[-1]
    x = (x - mean) / math.sqrt(2.0) * WEIGHTS + tf.random.normal([SIZE], stddev=0.1)
    return {"x": x, "range": (high - low, mean)}, f"{SIZE}"


def with_block(x):
    with tf.name_scope("block"):
        return tf.abs(x)


def item(x):
    row = {"x": x}
    row["y"] = tf.abs(x)
    return row


def checked(x):
    assert x is not None
    return x


STRAIGHT = [
    scaled,
    lambda x: (x[:-1], x[-1], -x),
    lambda x: tf.where(x > 2.0, x, WEIGHTS),
    lambda x: tf.io.parse_single_example(tf.strings.as_string(x[0]), FEATURES),
    factor_of(2.0),
    factor_of(WEIGHTS),
]
CONVERTED = [
    helper,
    with_block,
    item,
    checked,
    lambda x: helper(x),
    lambda x: x if SIZE > 2 else -x,
    lambda x: not x,
    lambda x: x[0] > 0 and x[1] > 0,
    lambda x: 0 < x[0] < 1,
    lambda x: len(x),
    lambda x: tf.stack([part + 1.0 for part in tf.unstack(x)]),
    lambda x: tf.map_fn(lambda part: part * 2.0, x),
    lambda x: tf.map_fn(helper, x),
    lambda x: tf.stack(*[[x]]),
    lambda x: SIZE in [x],
    factor_of(helper),
    Decoder().decode,
    functools.partial(scaled),
    tf.function(scaled),
    tf.abs,
    abs,
]


@pytest.mark.parametrize("function", STRAIGHT)
def test_autograph_leaves_straight_code_as_it_is(function):
    assert is_straight_code(function)

    def ops(autograph):
        traced = tf.function(function, autograph=autograph).get_concrete_function(tf.TensorSpec([SIZE], tf.float32))
        return [(op.type, [put.op.name for put in op.inputs]) for op in traced.graph.get_operations()]

    assert ops(autograph=True) == ops(autograph=False)


@pytest.mark.parametrize("function", CONVERTED)
def test_anything_else_may_be_converted(function):
    assert not is_straight_code(function)


def test_a_variable_without_a_value_is_unknown():
    def function(x):
        return x * later

    assert not is_straight_code(function)
    later = 2.0
    assert is_straight_code(function)
