"""Keras layers that take a batch of texts as they take one: on TensorFlow's own traces, with real elements as the reference."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.capture.instrument.traced_functions import function_facts, function_site

pytestmark = pytest.mark.tensorflow
TEXTS = ["The cat sat", "a dog, a CAT!", "two", "one two three four five six seven"]


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def facts(dataset, function):
    found = function_facts(dataset.map(function), function, function_site(function, lambda file: file == __file__))
    assert found is not None
    return found


def adapted(tf, **options):
    layer = tf.keras.layers.TextVectorization(**{"output_sequence_length": 6, **options})
    layer.adapt(TEXTS)
    return layer


def is_same_on_batches(tf, dataset, function):
    moved = dataset.batch(3).map(function)
    for batch, other in zip(dataset.map(function).batch(3), moved, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, batch, other)
    return True


def test_a_text_becomes_as_many_numbers_in_a_batch(tf):
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    labelled = tf.data.Dataset.from_tensor_slices((TEXTS, [0, 1, 2, 1]))
    layer, characters = adapted(tf), adapted(tf, split="character", standardize=None)
    fixed = tf.keras.layers.TextVectorization(vocabulary=["cat", "dog"], output_sequence_length=3)

    class Encoder:
        def __init__(self):
            self.layer = layer

        def encode(self, text, label):
            return self.layer(text), label

    def encode(text, label):
        text = tf.strings.regex_replace(text, "three", "")
        ids = layer(text)
        return tf.cast(ids, tf.int32) + 1, tf.one_hot(label, 3)

    words = tf.data.Dataset.from_tensor_slices(["cat", "dog", "cow", "cat"])
    numbers = tf.data.Dataset.from_tensor_slices([[3, 5], [5, 7], [1, 3], [9, 9]])
    look_up, inverse = tf.keras.layers.StringLookup(), tf.keras.layers.StringLookup(vocabulary=["cat"], invert=True)
    look_up.adapt(["cat", "dog"])
    integers = tf.keras.layers.IntegerLookup(vocabulary=[3, 5])
    bins = tf.keras.layers.Discretization(bin_boundaries=[2.0, 6.0])
    plain = [
        (words, lambda word: look_up(word), ("StringLookup",)),
        (words, lambda word: inverse(look_up(word)), ("StringLookup",)),
        (numbers, lambda pair: integers(pair) * 2, ("IntegerLookup",)),
        (numbers, lambda pair: bins(tf.cast(pair, tf.float32)), ()),
    ]
    for number, (dataset, function, classes) in enumerate(plain):
        found = facts(dataset, function)
        assert (found.is_elementwise, found.batch_layers) == (True, classes), number
        assert is_same_on_batches(tf, dataset, function), number
    cases = [
        (labelled, lambda text, label: (layer(text), label)),
        (labelled, encode),
        (labelled, Encoder().encode),
        (texts, lambda text: characters(text)),
        (texts, lambda text: fixed(text)),
        (texts, layer),
    ]
    for number, (dataset, function) in enumerate(cases):
        found = facts(dataset, function)
        assert (found.is_elementwise, found.batch_layers) == (True, ("TextVectorization",)), number
        assert found.keeps_padding is None
        assert is_same_on_batches(tf, dataset, function), number


def test_look_alikes_are_not_called_with_batches(tf):
    """They fail with batches, give other values, or nothing is known of the layer."""
    texts = tf.data.Dataset.from_tensor_slices(TEXTS)
    layer, other = adapted(tf), adapted(tf, output_sequence_length=None)
    counting = adapted(tf, output_mode="count", output_sequence_length=None)
    own = adapted(tf, split=lambda texts: tf.strings.split(texts, ","))
    ragged = adapted(tf, ragged=True, output_sequence_length=None)

    def helper(text):
        return layer(text)

    class Own(tf.keras.layers.TextVectorization):
        def call(self, inputs):
            return super().call(inputs) * (1 + inputs.shape.rank)

    derived = Own(vocabulary=["cat"], output_sequence_length=3)

    one_hot = tf.keras.layers.StringLookup(vocabulary=["cat"], output_mode="one_hot")
    encoding = tf.keras.layers.CategoryEncoding(num_tokens=20, output_mode="one_hot")
    look_up = tf.keras.layers.StringLookup(vocabulary=["cat"])
    cases = [
        lambda text: one_hot(text),
        lambda text: encoding(tf.strings.length(text)),
        lambda text: (look_up(text), one_hot(text)),
        lambda text: look_up(tf.expand_dims(tf.strings.split(text), 0)),
        lambda text: other(text),
        lambda text: counting(text),
        lambda text: own(text),
        lambda text: ragged(text),
        lambda text: layer(tf.expand_dims(text, 0)),
        lambda text: layer(tf.strings.split(text)),
        lambda text: (layer(text), other(text)),
        lambda text: tf.reduce_sum(layer(text)),
        lambda text: layer(text)[:2],
        lambda text: layer("the same text"),
        lambda text: helper(text),
        lambda text: derived(text),
    ]
    for number, function in enumerate(cases):
        assert facts(texts, function).is_elementwise is False, number
