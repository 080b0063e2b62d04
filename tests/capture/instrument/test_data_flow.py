"""What the graphs of functions show: on TensorFlow's own traces."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.capture.instrument.traced_functions import function_facts, function_site

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def facts(dataset, function):
    return function_facts(dataset, function, function_site(function, lambda file: file == __file__))


def test_a_function_is_element_wise_if_one_more_dimension_changes_nothing(tf):
    numbers, rows = tf.data.Dataset.range(4), tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]])
    texts = tf.data.Dataset.from_tensor_slices(["abc", "bcd"])
    yes = [
        (numbers, lambda x: (tf.cast(x, tf.float32) - 1.0) * 2.0),
        (rows, lambda x: x * 2.0 + [1.0, 3.0]),
        (rows, lambda x: tf.where(x > 2.0, x, -x)),
        (tf.data.Dataset.zip((rows, numbers)), lambda row, n: (row * 2.0, n)),
        (texts, lambda t: tf.cast(tf.io.decode_raw(t, tf.uint8), tf.float32) / 255.0),
        (texts, lambda t: tf.strings.length(tf.strings.regex_replace(t, "a", ""))),
    ]
    no = [
        (
            numbers,
            lambda x: tf.cast(x, tf.float32) * tf.constant([2.0]),
        ),  # a batch would be multiplied along its own axis
        (numbers, lambda x: tf.constant(3.0)),
        (rows, lambda x: x / tf.reduce_sum(x)),
        (rows, lambda x: (x, x[0])),
        (texts, lambda t: tf.io.decode_raw(t, tf.uint8) + tf.cast(tf.strings.length(t), tf.uint8)),
        (texts, lambda t: tf.io.decode_raw(t, tf.uint8) + tf.constant([[1], [2]], tf.uint8)),
        (tf.data.Dataset.zip((rows, numbers)), lambda row, n: row * tf.cast(n, tf.float32)),
    ]
    assert [facts(dataset.map(function), function).is_elementwise for dataset, function in yes] == [True] * len(yes)
    assert [facts(dataset.map(function), function).is_elementwise for dataset, function in no] == [False] * len(no)


def test_a_function_may_use_ops_that_take_batches_as_they_are(tf):
    numbers, texts = tf.data.Dataset.range(6), tf.data.Dataset.from_tensor_slices(["abc", "bcd", "a", "dd", "b", ""])
    lines = tf.data.Dataset.from_tensor_slices([f"{n},{n / 2},t{n}" for n in range(6)])
    defaults = [[0], [0.0], [""]]
    images = tf.data.Dataset.from_tensor_slices(tf.random.stateless_uniform([6, 5, 4, 3], [1, 2]))
    weights = tf.random.stateless_normal([6, 2], [3, 4])
    keys = tf.lookup.KeyValueTensorInitializer(["abc", "b"], tf.constant([1, 2], tf.int64))
    table, vocabulary = tf.lookup.StaticHashTable(keys, 0), tf.lookup.StaticVocabularyTable(keys, 3)
    yes = [
        (numbers, lambda x: tf.one_hot(x, 6)),
        (numbers, lambda x: (tf.gather(weights, x) * 2.0, x)),
        (texts, lambda t: tf.one_hot(table.lookup(tf.strings.lower(t)), 3)),
        (texts, lambda t: tf.gather(weights, table.lookup(t))),
        (texts, lambda t: tf.strings.regex_replace(tf.strings.substr(t, 0, 2), "b", "x")),
        (texts, lambda t: tf.expand_dims(tf.strings.length(t), -1)),
        (images, lambda i: tf.image.resize(i, [3, 3]) / 255.0),
        (images, lambda i: tf.image.resize(i, [7, 6], "bicubic")),
        (images, lambda i: tf.image.resize(i, [2, 2], antialias=True)),
        (texts, lambda t: vocabulary.lookup(t)),
        (lines, lambda t: tuple(tf.io.decode_csv(t, defaults))),
        (lines, lambda t: tf.io.decode_csv(t, [[0], [0.0]], select_cols=[0, 1])[1] / 2.0 + 1.0),
    ]
    no = [
        (numbers, lambda x: tf.one_hot(x, 6, axis=0)),
        (numbers, lambda x: tf.one_hot([1, 2], tf.cast(x, tf.int32) + 1)),
        (images, lambda i: tf.gather(i, 1)),
        (images, lambda i: tf.gather(weights, [1], axis=1)),
        (texts, lambda t: tf.expand_dims(tf.strings.length(t), 0)),
        (lines, lambda t: tf.stack(tf.io.decode_csv(t, [[0.0], [0.0]], select_cols=[0, 1]))),
        (lines, lambda t: tf.io.decode_csv(t, defaults)[1] * tf.constant([2.0])),
        (lines, lambda t: tf.io.decode_csv("1,a", [[0], t])[1]),
        (texts, lambda t: tf.strings.substr("abcdef", 0, tf.strings.length(t))),
        (texts, lambda t: (vocabulary.lookup(t), vocabulary.size())),
        (images, lambda i: tf.image.resize(i, tf.cast(i[0, 0, :2], tf.int32) + 2)),
    ]
    for dataset, function in yes:
        mapped = dataset.map(function)
        assert facts(mapped, function).is_elementwise
        single, batched = mapped.batch(4), dataset.batch(4).map(function)
        assert single.element_spec == batched.element_spec
        for a, b in zip(single, batched, strict=True):
            tf.nest.map_structure(lambda x, y: np.testing.assert_array_equal(x, y), a, b)
    assert [facts(dataset.map(function), function).is_elementwise for dataset, function in no] == [False] * len(no)


def test_padding_is_kept_by_functions_that_make_it_of_itself_in_every_open_dimension(tf):
    rows = tf.data.Dataset.range(1, 6).map(lambda n: tf.range(n)).map(lambda row: tf.ensure_shape(row, [None]))
    words = rows.map(tf.strings.as_string)
    images = rows.map(lambda row: tf.ensure_shape(tf.cast(row, tf.float32)[:, None] * [1.0, 2.0, 3.0], [None, 3]))
    labelled = tf.data.Dataset.zip((rows, tf.data.Dataset.range(5)))
    yes = [
        (rows, lambda x: tf.cast(x, tf.float32) / 255.0),
        (rows, lambda x: tf.minimum(x, 3) * 2),
        (rows, lambda x: x > 0),
        (words, tf.strings.length),
        (words, tf.strings.upper),
        (images, lambda x: x * [0.5, 0.25, 2.0]),
        (labelled, lambda x, y: (x * 3, y + 1)),  # a component of known size is not padded
    ]
    no = [
        (rows, lambda x: x + 1),
        (rows, lambda x: -tf.cast(x, tf.float32)),  # -0.0 is not 0.0
        (rows, lambda x: (x, x + 1)),
        (words, lambda x: tf.strings.join([x, "s"])),
        (images, lambda x: x - [0.0, 0.0, 1.0]),
    ]
    unknown = [
        (tf.data.Dataset.range(5), lambda x: x * 2),  # nothing is padded
        (tf.data.Dataset.zip((rows, rows)), lambda x, y: x * y),  # their sizes need not be the same
        (rows, lambda x: x * tf.constant([1, 1, 1], tf.int64)),
        (rows, lambda x: x - tf.reduce_min(x)),
        (rows, lambda x: 6 // x),  # fails with a zero
    ]
    keeps_padding = [[facts(data.map(f), f).keeps_padding for data, f in pairs] for pairs in (yes, no, unknown)]
    assert keeps_padding == [[True] * len(yes), [False] * len(no), [None] * len(unknown)]
    for dataset, function in yes:
        single, batched = dataset.map(function).padded_batch(3), dataset.padded_batch(3).map(function)
        assert single.element_spec == batched.element_spec
        for a, b in zip(single, batched, strict=True):
            assert all(
                one.numpy().tolist() == two.numpy().tolist()
                for one, two in zip(tf.nest.flatten(a), tf.nest.flatten(b), strict=True)
            )


def test_reading_a_function_inside_another_adds_no_ops_to_that(tf):
    """They would be in the user's graph, and a changed text would not make the graph that was proved."""
    ops = []

    def outer(numbers):
        parts = tf.data.Dataset.from_tensor_slices(numbers).batch(2)
        made = parts.map(tf.abs)
        before = len(tf.compat.v1.get_default_graph().get_operations())
        assert facts(made, tf.abs).keeps_padding is True
        ops.append(len(tf.compat.v1.get_default_graph().get_operations()) - before)
        return made

    tf.data.Dataset.from_tensors(tf.range(6)).flat_map(outer)
    assert ops == [0]


def test_a_function_inside_another_uses_its_values_or_does_not(tf):
    seen = {}
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), 0)
    weights, variable = tf.random.stateless_normal([50, 50], [1, 2]), tf.Variable(2.0)
    functions = {
        "element": lambda i: lambda x: x * i,
        "computed": lambda i: (lambda n: lambda x: x + n)(i + 1),
        "nothing": lambda i: lambda x: x * 2,
        "constant": lambda i: lambda x: weights * tf.cast(x, tf.float32),
        "table": lambda i: lambda x: table.lookup(tf.cast(x, tf.int32)),
        "variable": lambda i: lambda x: variable * tf.cast(x, tf.float32),
    }
    for name, make in functions.items():

        def read(i, name=name, make=make):
            dataset = tf.data.Dataset.range(3).map(make(i))
            seen[name] = facts(dataset, make(i)).uses_enclosing
            return dataset

        tf.data.Dataset.range(2).flat_map(read)
    assert seen == {name: name in ("element", "computed") for name in functions}
    assert facts(tf.data.Dataset.range(3).map(abs), abs).uses_enclosing is False


def test_element_wise_ops_give_the_same_result_on_batches(tf):
    rows = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def scale(x):
        return tf.maximum(x * 2.0 + [1.0, 3.0], 4.0)

    assert facts(rows.map(scale), scale).is_elementwise
    single, batched = rows.map(scale).batch(2), rows.batch(2).map(scale)
    for a, b in zip(single.as_numpy_iterator(), batched.as_numpy_iterator(), strict=True):
        assert a.tobytes() == b.tobytes()


def test_bytes_decoded_in_a_batch_are_those_decoded_one_by_one(tf):
    records = tf.data.Dataset.from_tensor_slices([bytes(range(n, n + 6)) for n in range(5)])

    def decode(record):
        return tf.cast(tf.io.decode_raw(record, tf.uint8), tf.float32) / 255.0, tf.strings.length(record)

    assert facts(records.map(decode), decode).is_elementwise
    single, batched = records.map(decode).batch(2), records.batch(2).map(decode)
    for one, two in zip(single.as_numpy_iterator(), batched.as_numpy_iterator(), strict=True):
        assert [part.tobytes() for part in one] == [part.tobytes() for part in two]


def test_values_that_depend_on_random_numbers_are_distinguished(tf):
    def load(text):
        numbers = tf.io.decode_raw(text, tf.uint8)
        pixels = tf.sort(tf.cast(numbers, tf.float32))
        noise = tf.random.uniform(())
        if noise > 0.5:
            pixels = pixels + tf.random.normal(())
        return tf.exp(pixels * noise)

    function_facts = facts(tf.data.Dataset.from_tensors(b"abc").map(load), load)
    assert {"DecodeRaw", "Cast"} <= set(function_facts.fixed_ops)
    assert not {"Exp", "If", "RandomUniform"} & set(function_facts.fixed_ops)
    assert function_facts.random_site.line == load.__code__.co_firstlineno + 3
    assert ("DecodeRaw", "Cast") in function_facts.flow


def test_nothing_is_reported_without_random_numbers(tf):
    def double(x):
        return x * 2

    function_facts = facts(tf.data.Dataset.range(3).map(double), double)
    assert (function_facts.fixed_ops, function_facts.random_site) == ({}, None)


def test_components_that_pass_through_and_those_that_are_read(tf):
    pairs = tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [3, 4]))

    def scale(image, label):
        return image * 2.0, label

    def swap(image, label):
        return label, image

    def is_wanted(image, label):
        return label > 3

    assert facts(pairs.map(scale), scale).unchanged == ((1, 1),)
    assert set(facts(pairs.map(swap), swap).unchanged) == {(0, 1), (1, 0)}
    assert facts(pairs.filter(is_wanted), is_wanted).used_inputs == (1,)
