"""Two traces of one function have one identity, in whatever order independent ops were added; another result has another."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.graph_identity import traced_identity

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def identity():
    import tensorflow as tf

    def identity_of_map(function):
        components = tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [3, 4]))
        return traced_identity(components.map(function))

    return identity_of_map


def reshaped(order, results="ab"):
    """Reshapes two components in this order, as libraries do that go through a set."""
    import tensorflow as tf

    def function(a, b):
        values = {"a": tf.identity(a), "b": tf.identity(b)}  # branches number their inputs in the order of use
        for name in order:
            values[name] = tf.reshape(values[name], [1])
        return tuple(values[name] for name in results)

    return function


def test_the_order_of_independent_ops_does_not_show_and_that_of_results_does(identity):
    assert identity(reshaped("ab")) == identity(reshaped("ba"))
    assert identity(reshaped("ab")) != identity(reshaped("ab", "ba"))
    assert identity(reshaped("ab")) != identity(reshaped("ab", "aa"))


def test_the_order_shows_nowhere_in_branches_and_which_branch_is_taken_does(identity):
    import tensorflow as tf

    def chosen(order, swapped=False):
        def expanded(a, b):
            return tf.expand_dims(a, 0), tf.expand_dims(b, 0)

        first, second = (expanded, reshaped(order)) if swapped else (reshaped(order), expanded)

        def choose(a, b):
            return tf.cond(a > 1.0, lambda: first(a, b), lambda: second(a, b))

        return choose

    assert identity(chosen("ab")) == identity(chosen("ba"))
    assert identity(chosen("ab")) != identity(chosen("ab", swapped=True))


def test_a_random_number_that_is_drawn_once_is_not_one_that_is_drawn_twice(identity):
    import tensorflow as tf

    def twice(a, b):
        return tf.random.uniform([]), tf.random.uniform([])

    def once(a, b):
        tf.random.uniform([])
        number = tf.random.uniform([])
        return number, number

    assert identity(twice) == identity(twice)
    assert identity(twice) != identity(once)


def test_constants_and_attributes_show_and_seeds_do_not(identity):
    import tensorflow as tf

    def scaled(factor):
        return lambda a, b: (a * factor, b)

    def random(seed):
        return lambda a, b: tf.random.uniform([], seed=seed)

    assert identity(scaled(2.0)) == identity(scaled(2.0)) != identity(scaled(3.0))
    assert identity(lambda a, b: tf.cast(a, tf.int32)) != identity(lambda a, b: tf.cast(a, tf.int64))
    assert identity(random(1)) == identity(random(2))
