"""Records that are parsed one by one, then batched or padded: the same batches from a call per batch, or a reason why not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.model.finding import Safety
from advisor.predict import batch_parser
from advisor.predict.batch_parsers import BatchParser
from tests.effort import examples
from tests.recorded import Recorded
from tests.rewrite.script_runs import assert_written_as_proved, run
from tests.rewrite.test_batch_parts import EMPTY

pytestmark = pytest.mark.tensorflow
HEAD = """\
import tensorflow as tf


def record(words, label):
    values = {
        "words": tf.train.Feature(bytes_list=tf.train.BytesList(value=[word.encode() for word in words.split()])),
        "sizes": tf.train.Feature(float_list=tf.train.FloatList(value=[len(word) for word in words.split()])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()


records = [record(words, label) for label, words in enumerate(["a B c", "", "b", "a  b a b X", "c"])]
FEATURES = {
    "words": tf.io.VarLenFeature(tf.string),
    "sizes": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


"""
PADDED = '''\
def parse(one):
    """Parse a record."""
    fields = tf.io.{parser}(one, FEATURES)
    words = tf.strings.lower(tf.sparse.to_dense(fields["words"]))  # é: a column is not a byte
    return {{"words": words, "sizes": tf.sqrt(fields["sizes"])}}, fields["label"] * 2
'''
LABELS = "def label_of(one, scale):\n    return tf.io.{parser}(one, FEATURES)['label'] * scale\n"
LOOP = """\
def parse(one):
    fields = tf.io.{parser}(one, FEATURES)
    for name in fields:
        fields[name] = tf.sparse.to_dense(fields[name]) if isinstance(fields[name], tf.SparseTensor) else fields[name]
    return fields
"""


def both(text: str, name: str) -> tuple[str, str]:
    """The definition for one record, and the same followed by that for batches."""
    one, many = text.format(parser="parse_single_example"), text.format(parser="parse_example")
    return one, f"{one}\n\n{many.replace(f'def {name}(', f'def {name}_batch(')}"


SCRIPTS = {
    "padded": (
        *both(PADDED, "parse"),
        "\n\nds = tf.data.Dataset.from_tensor_slices(records)\nds = ds.map(parse, num_parallel_calls=2).padded_batch(2)\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices(records)\nds = ds.padded_batch(2).map(parse_batch, num_parallel_calls=2)\n",
    ),
    "padded, with padded_shapes, behind a shuffle": (
        *both(LOOP, "parse"),
        '\n\nshapes = {"words": [None], "sizes": [None], "label": []}\nds = tf.data.Dataset.from_tensor_slices(records)\n'
        "ds = ds.map(parse).shuffle(3, seed=1).padded_batch(2, shapes)\n",
        '\n\nshapes = {"words": [None], "sizes": [None], "label": []}\nds = tf.data.Dataset.from_tensor_slices(records)\n'
        "ds = ds.shuffle(3, seed=1).batch(2).map(parse_batch)\n",
    ),
    "a lambda that passes an argument, and a batch": (
        *both(LABELS, "label_of"),
        "\n\nds = tf.data.Dataset.from_tensor_slices(records)\n"
        "ds = ds.map(lambda one: label_of(one, 3)).batch(2, drop_remainder=True)\n",
        "\n\nds = tf.data.Dataset.from_tensor_slices(records)\n"
        "ds = ds.batch(2, drop_remainder=True).map(lambda one: label_of_batch(one, 3))\n",
    ),
}
SHORTEST = "padded"


def judged(recorded: Recorded, batched: str = "padded_batch") -> BatchParser:
    calls = recorded.recorder.calls()
    return batch_parser(dataclasses.replace(EMPTY, calls=calls), recorded.call("map"), recorded.call(batched))


@pytest.mark.parametrize(
    "name", [name if name == SHORTEST else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_batches_are_the_same_bit_for_bit(name, tmp_path, monkeypatch, recorded):
    (one, many, before, after), path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(HEAD + one + before, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (dataset,) = run(path, monkeypatch)
    found = judged(recorded, "padded_batch" if "padded_batch" in before else "batch")
    assert found.fix is not None, found.reason
    assert (found.fix.safety, found.fix.is_auto) == (Safety.EXACT, True)
    assert_written_as_proved(recorded, path, dataset, found.fix.edits, HEAD + many + after, monkeypatch)


def features(**more: Any) -> dict[str, Any]:
    import tensorflow as tf

    return {"ids": tf.io.VarLenFeature(tf.int64), "label": tf.io.FixedLenFeature([], tf.int64), **more}


def record(ids: list[int], label: int = 1, sizes: list[float] | None = None) -> bytes:
    import tensorflow as tf

    values = {
        "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=ids)),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    if sizes is not None:
        values["sizes"] = tf.train.Feature(float_list=tf.train.FloatList(value=sizes))
    data: bytes = tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()
    return data


def refusal(recorded: Recorded, function: Any, **padded: Any) -> str:
    import tensorflow as tf

    texts = tf.data.Dataset.from_tensor_slices([record([1, 2]), record([3])]).take(-1)
    texts.map(function).padded_batch(2, **padded)
    found = judged(recorded)
    assert found.fix is None
    return found.reason


def test_what_a_batch_of_records_computes_otherwise_is_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([0, 1], [5, 6], tf.int64, tf.int64), -1)
    sequence = tf.io.FixedLenSequenceFeature
    other = features(more=sequence([], tf.int64, allow_missing=True, default_value=-1))

    def ids_of(text: Any) -> Any:
        return tf.sparse.to_dense(tf.io.parse_single_example(text, features())["ids"])

    def ragged_of(text: Any) -> Any:
        return tf.io.parse_single_example(text, {"ids": tf.io.RaggedFeature(tf.int64)})["ids"]

    unknown = "what it does with the features is not known to be the same"
    for function in (
        lambda text: ids_of(text) + 1,
        lambda text: -tf.cast(ids_of(text), tf.float32),
        lambda text: ids_of(text)[:2],
        lambda text: tf.shape(ids_of(text)),
        lambda text: table.lookup(ids_of(text)),
        lambda text: ids_of(text) * tf.io.parse_single_example(text, features())["label"],
        lambda text: tf.sparse.to_dense(tf.io.parse_single_example(text, features())["ids"], default_value=-1),
        lambda text: tf.io.parse_single_example(text, features())["ids"].values,
        lambda text: tf.io.parse_single_example(text, other)["more"],
        lambda text: tf.concat(
            [[tf.io.parse_single_example(text, features())["label"]], tf.constant([0], tf.int64)], 0
        ),
        ragged_of,
    ):
        assert refusal(recorded, function).startswith(unknown)


def test_padding_that_a_parser_does_not_repeat_is_refused_with_the_reason(recorded: Recorded) -> None:
    import tensorflow as tf

    def parse(text: Any) -> Any:
        return tf.sparse.to_dense(tf.io.parse_single_example(text, features())["ids"])

    assert "pads to a fixed length" in refusal(recorded, parse, padded_shapes=[12])
    assert "gets padding_values" in refusal(recorded, parse, padding_values=tf.constant(7, tf.int64))
    assert "drops the remainder" in refusal(recorded, parse, drop_remainder=True)


@pytest.mark.long
@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(-3, 3), max_size=4),
            st.integers(-2, 2),
            st.none() | st.lists(st.floats(0, 9, width=32), max_size=3),
        ),
        min_size=1,
        max_size=7,
    ),
    st.integers(1, 4),
    st.sampled_from(["ids", "sizes", "all"]),
)
def test_arbitrary_records(
    recorded: Recorded, rows: list[tuple[list[int], int, list[float] | None]], size: int, kind: str
) -> None:
    import tensorflow as tf

    names = features(sizes=tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True))

    def parse(text: Any) -> Any:
        fields = tf.io.parse_single_example(text, names)
        ids, sizes = tf.abs(tf.sparse.to_dense(fields["ids"])), tf.square(fields["sizes"])
        return {"ids": ids, "sizes": sizes, "all": (ids, fields["label"] + 1, {"b": sizes, "a": ids})}[kind]

    dataset = tf.data.Dataset.from_tensor_slices([record(*row) for row in rows]).map(parse).padded_batch(size)
    found = judged(recorded)
    assert found.fix is not None, found.reason
    edited = recorded.replay(dataset, *found.fix.edits)
    assert edited.element_spec == dataset.element_spec
    pairs = zip(dataset.as_numpy_iterator(), edited.as_numpy_iterator(), strict=True)
    for one, other in ((tf.nest.flatten(before), tf.nest.flatten(after)) for before, after in pairs):
        assert [(leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in one] == [
            (leaf.dtype, leaf.shape, leaf.tobytes()) for leaf in other
        ]
