"""Rows of a given length, made one by one and padded: the same batches from a call per batch, or a reason why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.model.finding import Safety
from advisor.predict import rows_of_lengths
from advisor.predict.rows_of_lengths import RowsOfLengths
from advisor.replay.batch_function import draws_per_row
from advisor.replay.edited import CannotVectorize
from tests.effort import examples
from tests.recorded import Recorded
from tests.rewrite.script_runs import assert_written_as_proved, run
from tests.rewrite.test_batch_parts import EMPTY

pytestmark = pytest.mark.tensorflow
HEAD = "import tensorflow as tf\n\nlengths = [3, 1, 0, 5, 2]\n\n\n"
SCRIPTS = {
    "a row": (
        '''\
def wave(length):
    """A wave: é."""
    steps = tf.cast(tf.range(length), tf.float32)
    row = tf.sin(steps / 5.0) + tf.ones([length])
    return row
''',
        '''\
def wave_batch(length):
    """A wave: é."""
    steps = tf.cast(tf.ragged.range(length).flat_values, tf.float32)
    row = tf.sin(steps / 5.0) + tf.ones([tf.reduce_sum(length)])
    return tf.RaggedTensor.from_row_lengths(row, length).to_tensor()
''',
        "\n\nds = tf.data.Dataset.from_tensor_slices(lengths)\nds = ds.map(wave, num_parallel_calls=2).padded_batch(2)\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices(lengths)\nds = ds.padded_batch(2).map(wave_batch, num_parallel_calls=2)\n",
    ),
    "rows and numbers of an element, padded_shapes, behind a shuffle": (
        "def rows(label, length):\n    steps = tf.range(0, length, 1)\n    return (\n        steps,\n        label * 2,\n"
        "        tf.range(length),\n    )\n",
        "def rows_batch(label, length):\n    steps = tf.ragged.range(0, length, 1).flat_values\n    return (\n"
        "        tf.RaggedTensor.from_row_lengths(steps, length).to_tensor(),\n        label * 2,\n"
        "        tf.RaggedTensor.from_row_lengths(tf.ragged.range(length).flat_values, length).to_tensor(),\n    )\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices((lengths, lengths))\n"
        "ds = ds.map(rows).shuffle(3, seed=1).padded_batch(2, ([None], [], [None]))\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices((lengths, lengths))\n"
        "ds = ds.shuffle(3, seed=1).batch(2).map(rows_batch)\n",
    ),
    "a lambda that passes an argument": (
        "def steps(length, scale):\n    row = tf.range(length) * scale\n    return row\n",
        "def steps_batch(length, scale):\n    row = tf.ragged.range(length).flat_values * scale\n"
        "    return tf.RaggedTensor.from_row_lengths(row, length).to_tensor()\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices(lengths)\nds = ds.map(lambda n: steps(n, 3)).padded_batch(2)\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices(lengths)\nds = ds.padded_batch(2).map(lambda n: steps_batch(n, 3))\n",
    ),
}
SHORTEST = "a lambda that passes an argument"


def judged(recorded: Recorded, batched: str = "padded_batch") -> RowsOfLengths:
    calls = recorded.recorder.calls()
    return rows_of_lengths(dataclasses.replace(EMPTY, calls=calls), recorded.call("map"), recorded.call(batched))


@pytest.mark.parametrize(
    "name", [name if name == SHORTEST else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_batches_are_the_same_bit_for_bit(name, tmp_path, monkeypatch, recorded):
    (one, many, before, after), path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(HEAD + one + before, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (dataset,) = run(path, monkeypatch)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    assert (found.fix.safety, found.fix.is_auto) == (Safety.EXACT, True)
    text = f"{HEAD}{one}\n\n{many}{after}"
    assert_written_as_proved(recorded, path, dataset, found.fix.edits, text, monkeypatch)


def lengths() -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices([3, 1, 0, 5, 2]).take(-1)


def test_every_row_gets_random_numbers_of_its_own(recorded: Recorded) -> None:
    import tensorflow as tf

    def noise(length: Any) -> Any:
        return tf.random.uniform([length]) + tf.random.normal(tf.shape(tf.range(length)), stddev=2.0)

    dataset = lengths().map(noise).padded_batch(5)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    assert found.fix.safety is Safety.RERANDOMIZED
    (rows,) = recorded.replay(dataset, *found.fix.edits).as_numpy_iterator()
    assert [(row != 0).sum() for row in rows] == [3, 1, 0, 5, 2]
    assert len(set(rows.ravel().tolist()) - {0.0}) == 11


def test_words_of_a_static_table_are_the_same(recorded: Recorded) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1, 2], ["a", "b", "c"]), "-")

    def words(length: Any) -> Any:
        return table.lookup(tf.range(length))

    dataset = lengths().map(words).padded_batch(2)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    edited = recorded.replay(dataset, *found.fix.edits)
    expected = [
        [[b"a", b"b", b"c"], [b"a", b"", b""]],
        [[b"", b"", b"", b"", b""], [b"a", b"b", b"c", b"-", b"-"]],
        [[b"a", b"b"]],
    ]
    assert [batch.tolist() for batch in dataset.as_numpy_iterator()] == expected
    assert [batch.tolist() for batch in edited.as_numpy_iterator()] == expected


def test_a_draw_of_a_fixed_shape_is_none_for_all_rows() -> None:
    import tensorflow as tf

    one = lengths().map(lambda length: tf.random.uniform([length]))
    shared = lengths().batch(2).map(lambda length: tf.random.uniform([5]))
    joined = lengths().batch(2).map(lambda length: tf.random.uniform([tf.reduce_sum(length)]))
    assert not draws_per_row(one, shared, joins_rows=True)
    assert draws_per_row(one, joined, joins_rows=True)
    assert not draws_per_row(one, joined)


def test_values_that_depend_on_the_row_are_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    def part(of: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda length: of(tf.cast(tf.range(length), tf.float32))

    functions: list[Callable[[Any], Any]] = [
        part(lambda row: row - tf.reduce_max(row)),
        part(tf.cumsum),
        part(lambda row: row[::-1]),
        part(lambda row: row + tf.random.uniform([])),
        part(lambda row: row + tf.constant([1.0])),
        lambda length: tf.range(length) - length,
        lambda length: tf.range(1, length + 1),
        lambda length: tf.range(-1, length),
        lambda length: tf.range(0, length, 2),
        lambda length: tf.range(length, length * 2),
        lambda length: tf.range(length * 2),
        lambda length: tf.concat([tf.range(length), [7]], 0),
        lambda length: tf.random.normal([length, 1])[:, 0],
        lambda length: tf.random.normal([length], stddev=tf.cast(length, tf.float32)),
        lambda length: tf.reshape(length, [1]),
    ]
    for function in functions:
        lengths().map(function).padded_batch(2)
        assert recorded.call("map").function.row_length is None


def test_padding_that_to_tensor_does_not_repeat_is_refused_with_the_reason(recorded: Recorded) -> None:
    import tensorflow as tf

    def steps(length: Any) -> Any:
        return tf.range(length)

    for padded, reason in (
        ({"padded_shapes": [12]}, "pads to a fixed length, and to_tensor pads to the longest row"),
        ({"padding_values": 7}, "gets padding_values, and to_tensor pads with zeros"),
        ({"drop_remainder": True}, "drops the remainder"),
    ):
        lengths().map(steps).padded_batch(2, **padded)
        found = judged(recorded)
        assert found.fix is None
        assert reason in found.reason


def test_text_that_cannot_be_copied_is_refused_with_the_reason(recorded: Recorded) -> None:
    import tensorflow as tf

    def in_a_dictionary(length: Any) -> Any:
        return {"steps": tf.range(length)}

    def by_another_name(length: Any) -> Any:
        size = length
        return tf.range(size)

    def assigned(length: Any) -> Any:
        length = tf.identity(length)
        return tf.range(length)

    def in_a_list(length: Any) -> Any:
        results = tf.range(length), length
        return results

    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: lengths().map(in_a_dictionary), "not a tensor or a tuple of tensors"),
        (lambda: lengths().map(by_another_name), "does not make its rows of `length` itself"),
        (lambda: lengths().map(assigned), "assigns `length`, the length of its rows"),
        (lambda: lengths().map(in_a_list), "what it returns is not written as a tuple"),
    ]
    for dataset, reason in cases:
        dataset().padded_batch(2)
        assert recorded.call("map").function.row_length == 0
        found = judged(recorded)
        assert found.fix is None
        assert reason in found.reason


def test_a_lambda_is_not_copied(recorded: Recorded) -> None:
    import tensorflow as tf

    lengths().map(lambda length: tf.range(length)).padded_batch(2)
    assert judged(recorded).reason == "it is a lambda, of which no copy is written"


def test_a_length_that_stays_hidden_in_the_copy_fails_while_tracing(recorded: Recorded) -> None:
    """`tf.range` of another name gets the lengths of a batch, which no shape and no range takes."""
    import tensorflow as tf

    def hidden(length: Any) -> Any:
        size = length
        return tf.range(length) + tf.range(size)

    dataset = lengths().map(hidden).padded_batch(2)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    with pytest.raises(CannotVectorize):
        recorded.replay(dataset, *found.fix.edits)


@pytest.mark.long
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.integers(1, 4), st.sampled_from(["int32", "int64"]))
def test_arbitrary_lengths(recorded: Recorded, sizes: list[int], size: int, dtype: str) -> None:
    import tensorflow as tf

    def rows(length: Any) -> Any:
        steps = tf.range(length)
        words = tf.strings.as_string(steps * 3)
        return steps, words, tf.cast(steps, tf.float64) * 0.1 + tf.fill([length], tf.constant(0.5, tf.float64)), length

    dataset = tf.data.Dataset.from_tensor_slices(tf.constant(sizes, dtype)).map(rows).padded_batch(size)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    edited = recorded.replay(dataset, *found.fix.edits)
    assert edited.element_spec == dataset.element_spec
    for one, other in zip(dataset.as_numpy_iterator(), edited.as_numpy_iterator(), strict=True):
        assert [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in one[:1] + one[2:]] == [
            (leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in other[:1] + other[2:]
        ]
        assert one[1].tolist() == other[1].tolist()
