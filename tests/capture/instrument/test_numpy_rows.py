"""Functions of arrays that compute for a batch what they compute for each row, and functions that do not, or may not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advisor.capture.instrument.numpy_rows import is_row_wise, rows

MEANS, SCALE, SMALL = np.arange(16.0), 2.0, np.float32(0.5)


def features(signal):
    spectrum = np.abs(np.fft.rfft(signal))
    return np.log1p(spectrum).astype(np.float32)


def standardised(x):
    """Several statements, methods and functions, constants from outside."""
    x = (x - MEANS) * SCALE + SMALL * math.sqrt(2.0) - np.pi
    centred = x - x.mean(axis=-1, keepdims=True)
    return np.clip(centred / np.std(x, axis=-1, keepdims=True), -3, 3), np.argmax(x, axis=-1)


def with_factor(factor):
    return lambda x: x * factor


def randomly(x):
    return x * np.random.rand()


def emptied(x):
    MEANS.fill(0.0)
    return x


def counting(x):
    np.add(MEANS, 1.0, out=MEANS)
    return x


def logged(x):
    print(x)
    return x


def branching(x):
    return x if x.sum(axis=-1) > 0 else -x


ROW_WISE = [
    (features, 1),
    (standardised, 1),
    (with_factor(3.0), 1),
    (lambda x, y: np.where(x > y, x, 0.0), 2),
    (lambda x: x[..., :5], 1),
    (lambda x: (x[..., 0], x[..., None, ::2]), 1),
    (lambda x: np.fft.rfft(x, 8).real, 1),
    (lambda x: np.cumsum(np.sort(x), axis=-1), 1),
    (lambda x: np.percentile(x, 30, axis=-1), 1),
    (lambda x: np.diff(x, 2) // 1 == -(-x[..., 2:] // 1), 1),
    (lambda x: np.roll(x, 3, -1).astype("float16", copy=False), 1),
    (lambda x: np.linalg.norm(x, axis=-1), 1),
]
OTHERS = [
    (lambda x: x.mean(), 1),
    (lambda x: x - x.mean(), 1),
    (lambda x: x - np.mean(x, axis=0), 1),
    (lambda x: x[:5], 1),
    (lambda x: x[0], 1),
    (lambda x: np.where(x), 1),
    (lambda x: np.array(x, ndmin=2), 1),
    (lambda x: np.percentile(x, [10, 90], axis=-1), 1),
    (lambda x: np.dot(x, x), 1),
    (lambda x: x @ MEANS, 1),
    (lambda x: np.outer(x, x), 1),
    (lambda x: np.add.reduce(x), 1),
    (lambda x: np.multiply(x, 2, out=MEANS), 1),
    (lambda x: x.reshape(-1), 1),
    (lambda x: x * MEANS[:, None], 1),
    (lambda x: np.float32(1.0), 1),
    (lambda x: (x, 1.0), 1),
    (lambda x: len(x) * x, 1),
    (lambda x: x.shape[0] * x, 1),
    (lambda x, y: x * y.max(axis=-1), 2),
    (lambda x: np.vectorize(abs)(x), 1),
    (lambda x: [part + 1 for part in x], 1),
    (with_factor([1.0, 2.0]), 1),
    (with_factor(features), 1),
    (randomly, 1),
    (emptied, 1),
    (counting, 1),
    (logged, 1),
    (branching, 1),
    (np.abs, 1),
    (features.__get__(3), 0),
]


@pytest.mark.parametrize(("function", "count"), ROW_WISE)
def test_a_row_wise_function_gives_for_a_batch_what_it_gives_for_each_row(function, count):
    assert is_row_wise(function, [rows(1)] * count)
    batches = [np.random.default_rng(number).standard_normal([7, 16]) for number in range(count)]
    of_batch, of_rows = function(*batches), [function(*row) for row in zip(*batches, strict=True)]
    if not isinstance(of_batch, tuple):
        of_batch, of_rows = (of_batch,), [(row,) for row in of_rows]
    for number, result in enumerate(of_batch):
        np.testing.assert_array_equal(result, np.stack([row[number] for row in of_rows]))


@pytest.mark.parametrize(("function", "count"), OTHERS)
def test_any_other_function_is_left_alone_and_changes_nothing(function, count):
    before, state = MEANS.copy(), np.random.get_state()[1].tolist()
    assert not is_row_wise(function, [rows(1)] * count)
    assert (before == MEANS).all()
    assert np.random.get_state()[1].tolist() == state


def test_arguments_must_have_one_rank_and_constants_no_higher_one():
    def product(x, y):
        return x * y

    assert is_row_wise(product, [rows(2), rows(2)])
    assert is_row_wise(product, [rows(1), np.ones(16)])
    assert not is_row_wise(product, [rows(1), rows(0)])
    assert not is_row_wise(product, [rows(0), np.ones(16)])
    assert not is_row_wise(product, [np.ones(3), np.ones(3)])


@pytest.mark.tensorflow
def test_facts_tell_which_functions_take_batches():
    tf = pytest.importorskip("tensorflow")
    from advisor.capture.instrument.traced_functions import function_facts, function_site

    def facts(function):
        dataset = tf.data.Dataset.from_tensor_slices(np.ones([4, 16], np.float32)).map(function)
        made = function_facts(dataset, function, function_site(function, lambda file: file == __file__))
        return made.is_python_row_wise, made.is_elementwise, [line.takes_batches for line in made.batch_lines]

    captured = tf.Variable(tf.ones([16]))
    assert facts(lambda x: tf.numpy_function(features, [x], tf.float32)) == (True, True, [])
    drawing = facts(lambda x: tf.numpy_function(features, [x + tf.random.uniform([16])], tf.float32))
    assert drawing == (True, True, [False, True, True])
    assert facts(lambda x: tf.numpy_function(branching, [x], tf.float32)) == (False, False, [])
    assert facts(lambda x: tf.numpy_function(with_factor(2.0), [captured], tf.float32))[0] is False
    assert facts(lambda x: tf.py_function(features, [x], tf.float32))[0] is False
    both = facts(lambda x: [tf.numpy_function(each, [x], tf.float32) for each in (features, branching)])
    assert both == (False, False, [])
