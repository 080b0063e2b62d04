"""Texts that are split into words, looked up and padded: the same padded batches from a call per batch, or a reason why not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.model.finding import Safety
from advisor.predict import ragged_text
from advisor.predict.ragged_text import RaggedText
from tests.effort import examples
from tests.recorded import Recorded
from tests.rewrite.script_runs import assert_written_as_proved, run
from tests.rewrite.test_batch_parts import EMPTY

pytestmark = pytest.mark.tensorflow
HEAD = """\
import tensorflow as tf

table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), 9)
texts = ["a b c", "", "b", "a  b a b x", "c"]


"""
ENCODE = "def encode(text):\n    return table.lookup(tf.strings.split(tf.strings.lower(text)))\n"
PAIR = "def encode(text, label):\n    words = tf.strings.split(text)\n    return table.lookup(words) - 1, label\n"
VOCABULARY = """\
keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64))
vocabulary = tf.lookup.StaticVocabularyTable(keys, num_oov_buckets=5)


def encode(text):
    return vocabulary.lookup(tf.strings.split(text)) + 1
"""
SCRIPTS = {
    "a tensor": (
        f"{ENCODE}\n\nds = tf.data.Dataset.from_tensor_slices(texts)\n"
        "ds = ds.map(encode, num_parallel_calls=2).padded_batch(2)\n",
        f"{ENCODE}\n\ndef encode_batch(*rows):\n    return encode(*rows).to_tensor()\n\n\n"
        "ds = tf.data.Dataset.from_tensor_slices(texts)\nds = ds.padded_batch(2).map(encode_batch, num_parallel_calls=2)\n",
    ),
    "a tuple with a label, padded_shapes, the remainder dropped": (
        f"{PAIR}\n\nds = tf.data.Dataset.from_tensor_slices((texts, [1, 2, 3, 4, 5]))\n"
        "ds = ds.map(encode).shuffle(3, seed=1).padded_batch(2, ([None], []), drop_remainder=True)\n",
        f"{PAIR}\n\ndef encode_batch(*rows):\n    results = encode(*rows)\n"
        "    return results[0].to_tensor(shape=[2, None]), results[1]\n\n\n"
        "ds = tf.data.Dataset.from_tensor_slices((texts, [1, 2, 3, 4, 5]))\n"
        "ds = ds.shuffle(3, seed=1).batch(2, drop_remainder=True).map(encode_batch)\n",
    ),
    "a vocabulary with buckets for other words": (
        f"{VOCABULARY}\n\nds = tf.data.Dataset.from_tensor_slices(texts).map(encode).padded_batch(2)\n",
        f"{VOCABULARY}\n\ndef encode_batch(*rows):\n    return encode(*rows).to_tensor()\n\n\n"
        "ds = tf.data.Dataset.from_tensor_slices(texts).padded_batch(2).map(encode_batch)\n",
    ),
    "words in a lambda, with a padding value": (
        "ds = tf.data.Dataset.from_tensor_slices(texts)\n"
        "ds = ds.map(lambda text: tf.strings.split(text)).padded_batch(3, padding_values='-')\n",
        "ds = tf.data.Dataset.from_tensor_slices(texts).batch(3)\n"
        "ds = ds.map(lambda *rows: (lambda text: tf.strings.split(text))(*rows).to_tensor(default_value='-'))\n",
    ),
}


def judged(recorded: Recorded) -> RaggedText:
    calls = recorded.recorder.calls()
    return ragged_text(dataclasses.replace(EMPTY, calls=calls), recorded.call("map"), recorded.call("padded_batch"))


SHORTEST = "words in a lambda, with a padding value"


@pytest.mark.parametrize(
    "name", [name if name == SHORTEST else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_batches_are_the_same_bit_for_bit(name, tmp_path, monkeypatch, recorded):
    (before, after), path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(HEAD + before)
    monkeypatch.chdir(tmp_path)
    (dataset,) = run(path, monkeypatch)
    ragged = judged(recorded)
    assert ragged.fix is not None, ragged.reason
    assert (ragged.fix.safety, ragged.fix.is_auto) == (Safety.EXACT, True)
    assert_written_as_proved(recorded, path, dataset, ragged.fix.edits, HEAD + after, monkeypatch)


def refusal(recorded: Recorded, function: Any, padded: Any = None, elements: Any = None) -> str:
    import tensorflow as tf

    texts = tf.data.Dataset.from_tensor_slices(["a b c", "", "b"] if elements is None else elements).take(-1)
    texts.map(function).padded_batch(2, **(padded or {}))
    ragged = judged(recorded)
    assert ragged.fix is None
    return ragged.reason


def test_what_a_batch_of_texts_computes_otherwise_is_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    split = tf.strings.split
    unknown = "what it does with the words is not known to be the same"
    for function in (
        lambda text: split(text)[:2],
        lambda text: tf.reverse(split(text), [0]),
        lambda text: tf.size(split(text)) + tf.zeros([3], tf.int32),
        lambda text: tf.strings.join([split(text), ["x", "y", "z"]]),
        lambda text: tf.strings.join([split(text), text]),
        lambda text: split(split(text)[0]),
        lambda text: tf.concat([["start"], split(text)], 0),
    ):
        assert refusal(recorded, function).startswith(unknown)


def test_padding_that_to_tensor_does_not_repeat_is_refused_with_the_reason(recorded: Recorded) -> None:
    import tensorflow as tf

    split = tf.strings.split
    assert "pads to a fixed length and refuses longer rows" in refusal(recorded, split, {"padded_shapes": [12]})
    assert "padding_values of several components" in refusal(
        recorded, lambda text: (split(text), tf.strings.length(text)), {"padding_values": ("-", 0)}
    )
    assert "not a tensor or a tuple" in refusal(recorded, lambda text: {"words": split(text)})
    assert "also pads what is not a row of words" in refusal(
        recorded,
        lambda text, size: (split(text), size),
        {"padded_shapes": ([None], [4])},
        (["a", "b"], [[1, 2], [3, 4]]),
    )
    variable = tf.Variable("x")
    assert "it reads state" in refusal(recorded, lambda text: tf.strings.join([split(text), variable]))


@pytest.mark.long
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(["a", "b", "A", "zz", "é"]), max_size=4).map(" ".join), min_size=1, max_size=7),
    st.integers(1, 4),
    st.booleans(),
    st.sampled_from(["words", "codes", "numbers"]),
)
def test_arbitrary_texts(recorded: Recorded, texts: list[str], size: int, drops: bool, kind: str) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), -1)

    def encode(text: Any) -> Any:
        words = tf.strings.split(text)
        if kind == "words":
            return tf.strings.lower(words)
        return table.lookup(words) * 2 if kind == "codes" else tf.cast(tf.strings.length(words), tf.float32) / 3.0

    dataset = tf.data.Dataset.from_tensor_slices(texts).map(encode).padded_batch(size, drop_remainder=drops)
    ragged = judged(recorded)
    assert ragged.fix is not None, ragged.reason
    edited = recorded.replay(dataset, *ragged.fix.edits)
    assert edited.element_spec == dataset.element_spec
    both = list(dataset.as_numpy_iterator()), list(edited.as_numpy_iterator())
    assert [(one.dtype, one.shape, one.tolist()) for one in both[0]] == [
        (one.dtype, one.shape, one.tolist()) for one in both[1]
    ]
