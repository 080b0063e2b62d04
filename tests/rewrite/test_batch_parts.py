"""Real scripts whose function is vectorised in parts: the text that is written makes the calls that were replayed, with the same
elements as before, bit for bit, and look-alikes are refused.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from advisor.capture.instrument.code_identity import changed_code
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Edit, MoveAfter, VectorizeParts
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.predict import mixed_function
from advisor.prove.texts.graph_difference import difference
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.runs.script_calls import recorded_graph
from advisor.replay.edited import CannotVectorize
from advisor.replay.edited_graph import edited_graph
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for
from advisor.testing import batch, map_, pipeline, source
from tests.in_one_line import in_one_line
from tests.recorded import Recorded
from tests.rewrite.script_runs import elements, recorded_again, replayed, run

pytestmark = pytest.mark.tensorflow
EMPTY: Analysis = pipeline(source(), map_("f", ms=1), batch(4), consumer_ms=1).analysis

RECORDS = """\
import tensorflow as tf

FEATURES = {"pixels": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def record(number):
    pixels = tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(number, number + 12))]))
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[number]))
    return tf.train.Example(features=tf.train.Features(feature={"pixels": pixels, "label": label})).SerializeToString()


def parse(record):
    features = tf.io.parse_single_example(record, FEATURES)
    pixels = tf.cast(tf.io.decode_raw(features["pixels"], tf.uint8), tf.int32)
    pixels = tf.reshape(pixels, [3, 4])
    return {"pixels": pixels - tf.reduce_max(pixels), "label": features["label"]}
"""
WORDS = """\
import tensorflow as tf


def make():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "B"], [1, 2]), -1)
    small = 1

    def encode(word, number):
        return tf.stack([table.lookup(word), table.lookup(tf.strings.upper(word)) - small]), number
"""
SCRIPTS = {
    "records with bytes in them, a partial last batch": (
        f"{RECORDS}\n\nds = tf.data.Dataset.from_tensor_slices([record(number) for number in range(11)])\n"
        "ds = ds.map(parse, num_parallel_calls=2).shuffle(4, seed=1).batch(4)\n",
        f"""{RECORDS}

def parse_batch(record):
    def parse_rows(record):
        features = tf.io.parse_single_example(record, FEATURES)
        return features

    features = tf.vectorized_map(parse_rows, record, fallback_to_while_loop=False)
    pixels = tf.cast(tf.io.decode_raw(features["pixels"], tf.uint8), tf.int32)

    def parse_rows_2(row):
        features, pixels = row
        pixels = tf.reshape(pixels, [3, 4])
        return {{"pixels": pixels - tf.reduce_max(pixels), "label": features["label"]}}

    return tf.vectorized_map(parse_rows_2, (features, pixels), fallback_to_while_loop=False)


ds = tf.data.Dataset.from_tensor_slices([record(number) for number in range(11)])
ds = ds.shuffle(4, seed=1).batch(4).map(parse_batch, num_parallel_calls=2)
""",
    ),
    "look-ups that are stacked, in a closure, the remainder dropped": (
        f"""{WORDS}
    rows = tf.data.Dataset.from_tensor_slices((["a", "b", "c", "B"] * 5, list(range(20))))
    return rows.map(encode).batch(8, drop_remainder=True)


ds = make()
""",
        f"""{WORDS}
    def encode_batch(word, number):
        value = table.lookup(word)
        value_2 = table.lookup(tf.strings.upper(word)) - small

        def encode_rows(row):
            number, value, value_2 = row
            return (tf.stack([value, value_2]), number)

        return tf.vectorized_map(encode_rows, (number, value, value_2), fallback_to_while_loop=False)

    rows = tf.data.Dataset.from_tensor_slices((["a", "b", "c", "B"] * 5, list(range(20))))
    return rows.batch(8, drop_remainder=True).map(encode_batch)


ds = make()
""",
    ),
    "images that are resized and flipped": (
        """\
import tensorflow as tf

def prepare(image):
    image = tf.image.resize(image, [6, 6])
    if tf.reduce_max(image) > 3:
        image = tf.image.flip_left_right(image)
    return image

images = tf.reshape(tf.range(5 * 4 * 4 * 3.0), [5, 4, 4, 3])
ds = tf.data.Dataset.from_tensor_slices(images).map(prepare).batch(2)
""",
        """\
import tensorflow as tf

def prepare(image):
    image = tf.image.resize(image, [6, 6])
    if tf.reduce_max(image) > 3:
        image = tf.image.flip_left_right(image)
    return image


def prepare_batch(image):
    image = tf.image.resize(image, [6, 6])

    def prepare_rows(image):
        if tf.reduce_max(image) > 3:
            image = tf.image.flip_left_right(image)
        return image

    return tf.vectorized_map(prepare_rows, image, fallback_to_while_loop=False)

images = tf.reshape(tf.range(5 * 4 * 4 * 3.0), [5, 4, 4, 3])
ds = tf.data.Dataset.from_tensor_slices(images).batch(2).map(prepare_batch)
""",
    ),
}


METHOD = """\
import tensorflow as tf


class Reader:
    scale = 2.0

    def __init__(self, size):
        self.size = size

    def prepare(self, image):
        image = tf.image.resize(image, [self.size, self.size]) / self.scale
        return tf.reverse(image, [0])
{}
    def dataset(self):
        images = tf.reshape(tf.range(5 * 4 * 4 * 3.0), [5, 4, 4, 3])
        return tf.data.Dataset.from_tensor_slices(images){}


ds = Reader(6).dataset()
"""
PREPARE = """\
import functools
import tensorflow as tf

def prepare(image, label, size, *, flips=False):
    image = tf.image.resize(image, [size, size])
    if flips:
        image = tf.reverse(image, [0])
    return image - tf.reduce_mean(image), label
{}
images = tf.reshape(tf.range(5 * 4 * 4 * 3.0), [5, 4, 4, 3])
width = 6
ds = tf.data.Dataset.from_tensor_slices((images, tf.range(5))){}
"""
PREPARE_BATCH = """

def prepare_batch(image, label, size, *, flips=False):
    image = tf.image.resize(image, [size, size])

    def prepare_rows(row):
        image, label = row
        if flips:
            image = tf.reverse(image, [0])
        return image - tf.reduce_mean(image), label

    return tf.vectorized_map(prepare_rows, (image, label), fallback_to_while_loop=False)
"""
SCRIPTS |= {
    "a method": (
        METHOD.format("", ".map(self.prepare).batch(2)"),
        METHOD.format(
            """
    def prepare_batch(self, image):
        image = tf.image.resize(image, [self.size, self.size]) / self.scale

        def prepare_rows(image):
            return tf.reverse(image, [0])

        return tf.vectorized_map(prepare_rows, image, fallback_to_while_loop=False)
""",
            ".batch(2).map(self.prepare_batch)",
        ),
    ),
    "a method in a lambda": (
        "\n" + METHOD.format("", ".map(lambda image: self.prepare(image)).batch(2)"),
        "\n"
        + METHOD.format(
            """
    def prepare_batch(self, image):
        image = tf.image.resize(image, [self.size, self.size]) / self.scale

        def prepare_rows(image):
            return tf.reverse(image, [0])

        return tf.vectorized_map(prepare_rows, image, fallback_to_while_loop=False)
""",
            ".batch(2).map(lambda image: self.prepare_batch(image))",
        ),
    ),
    "a function in a lambda": (
        PREPARE.format("", ".map(lambda picture, label: prepare(picture, label, width, flips=True)).batch(2)"),
        PREPARE.format(
            PREPARE_BATCH, ".batch(2).map(lambda picture, label: prepare_batch(picture, label, width, flips=True))"
        ),
    ),
    "a function in a partial": (  # AutoGraph takes functions of equal code in equal lines for the same one
        "\n" + PREPARE.format("", ".map(functools.partial(prepare, size=width, flips=True)).batch(2)"),
        "\n" + PREPARE.format(PREPARE_BATCH, ".batch(2).map(functools.partial(prepare_batch, size=width, flips=True))"),
    ),
}
NUMPY = """\
import numpy as np
import tensorflow as tf

def features(signal, weight):
    spectrum = np.abs(np.fft.rfft(signal)) * weight
    return np.log1p(spectrum / spectrum.max(axis=-1, keepdims=True)).astype(np.float32)

def prepare(signal):
    signal = tf.reverse(signal, [0])
    result = tf.numpy_function(features, [signal, 2.0], tf.float32)
    return tf.ensure_shape(result, [9])
{}
ds = tf.data.Dataset.from_tensor_slices(np.random.default_rng(0).standard_normal([11, 16]).astype(np.float32)){}
"""
NUMPY_BATCH = """

def prepare_batch(signal):
    def prepare_rows(signal):
        signal = tf.reverse(signal, [0])
        return signal

    signal = tf.vectorized_map(prepare_rows, signal, fallback_to_while_loop=False)
    result = tf.numpy_function(features, [signal, 2.0], tf.float32)

    def prepare_rows_2(result):
        return tf.ensure_shape(result, [9])

    return tf.vectorized_map(prepare_rows_2, result, fallback_to_while_loop=False)
"""


def with_set_shape(text: str) -> str:
    """The text with the other way to tell the shape of what NumPy returns."""
    return re.sub(r"( +)return tf.ensure_shape\((.*)\)", r"\1result.set_shape([9])\n\1return result", text)


SCRIPTS |= {
    "a NumPy function that computes each row on its own": (
        NUMPY.format("", ".map(prepare).batch(4)"),
        NUMPY.format(NUMPY_BATCH, ".batch(4).map(prepare_batch)"),
    ),
    "a NumPy function and a shape that is set": (
        with_set_shape(NUMPY.format("", ".map(prepare).batch(4)")),
        with_set_shape(NUMPY.format(NUMPY_BATCH, ".batch(4).map(prepare_batch)")),
    ),
}


def edits_of(recorded: Recorded, is_auto: bool = True) -> tuple[Edit, ...]:
    """The edits that the rules propose for the only map."""
    calls = recorded.recorder.calls()
    analysis = dataclasses.replace(EMPTY, calls=calls)
    mixed = mixed_function(analysis, recorded.call("map"), recorded.call("batch"))
    assert mixed.fix is not None, mixed.reason
    assert (mixed.fix.safety, mixed.fix.is_auto) == (Safety.EXACT, is_auto)
    return mixed.fix.edits


SHORTEST = "look-ups that are stacked, in a closure, the remainder dropped"


@pytest.mark.parametrize(
    "name", [name if name == SHORTEST else pytest.param(name, marks=pytest.mark.long) for name in SCRIPTS]
)
def test_the_written_parts_are_the_proved_ones(name, tmp_path, monkeypatch, recorded):
    (before, after), path = SCRIPTS[name], tmp_path / "train.py"
    path.write_text(before)
    monkeypatch.chdir(tmp_path)
    (dataset,) = run(path, monkeypatch)
    calls = {call.id: call for call in recorded.recorder.calls()}
    edits = edits_of(recorded, is_auto="flipped" not in name and "method" not in name)
    recorded.recorder.is_open = False
    judgement = Equivalence(recorded.recorder, str(call_id_of(dataset)), Bounds(400, 10.0), tmp_path).judge(edits)
    assert (str(judgement.seen), judgement.undecided) == ("exact", "")
    expected = elements(replayed(recorded, dataset, edits, calls))

    patch = patch_for(edits, calls, tmp_path)
    assert isinstance(patch, Patch), patch
    old, new = patch.files[path.resolve()]
    assert in_one_line(new.decode()) == in_one_line(after)
    proved = edited_graph(recorded_graph(recorded.recorder, call_id_of(dataset), edits=edits), edits)
    assert difference(proved, recorded_again(recorded, path, monkeypatch)[1]) is not None
    path.write_bytes(new)
    (patched,), graph = recorded_again(recorded, path, monkeypatch)
    assert difference(proved, graph, changed_code=changed_code(old, new)) is None
    assert elements(patched) == expected
    path.write_bytes(old.replace(b"\n\n", b"\n\n\n", 1))
    assert isinstance(patch_for(edits, calls, tmp_path), CannotRewrite)  # the definition is on another line


def lines_of(function: Any, elements: Any, recorded: Recorded) -> tuple[Any, ...]:
    elements.take(-1).map(function).batch(2)
    facts = recorded.call("map").function
    assert facts is not None
    return facts.batch_lines


def test_lines_are_described_by_public_names_and_whether_they_take_batches(recorded: Recorded) -> None:
    import tensorflow as tf

    def prepare(image: Any) -> Any:
        image = tf.image.resize(image, [6, 6]) / 255.0
        return tf.reverse(image, [0])

    lines = lines_of(prepare, tf.data.Dataset.from_tensors(tf.ones([4, 4, 3])), recorded)
    assert [(line.called, line.takes_batches) for line in lines] == [("resize", True), ("", True), ("reverse", False)]


def test_look_alikes_are_not_described(recorded: Recorded) -> None:
    """A batch would share what each row has of its own, or fail on rows that a single call takes."""
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)
    words = tf.data.Dataset.from_tensor_slices(["a", "bb", "c"])

    def constant_of_another_line(word: Any) -> Any:
        factors = tf.constant([1.0, 2.0])
        return tf.reverse(table.lookup(word) * factors, [0])

    def row_of_varying_length(word: Any) -> Any:
        return tf.reduce_sum(tf.cast(tf.io.decode_raw(word, tf.uint8), tf.int32))

    def reshaped_to_several_lengths(word: Any) -> Any:
        return tf.reverse(tf.reshape(tf.io.decode_raw(word, tf.uint8), [-1, 1]), [0])

    def constant_result(word: Any) -> Any:
        return tf.reverse([table.lookup(word)], [0]), 3

    def size_of_the_table(word: Any) -> Any:
        return tf.reverse([table.lookup(word)], [0]), table.size()

    def python_code(word: Any) -> Any:
        return tf.reverse([tf.numpy_function(lambda x: 1.0, [word], tf.float64)], [0])

    looking_alike = (
        constant_of_another_line,
        row_of_varying_length,
        reshaped_to_several_lengths,
        constant_result,
        size_of_the_table,
        python_code,
    )
    for function in looking_alike:
        assert lines_of(function, words, recorded) == (), function.__name__


def test_a_vocabulary_with_buckets_takes_a_batch_of_words(recorded: Recorded) -> None:
    """Its look-up also reads the number of its words, which is the same for every element."""
    import tensorflow as tf

    keys = tf.lookup.KeyValueTensorInitializer(["a"], tf.constant([0], tf.int64))
    table = tf.lookup.StaticVocabularyTable(keys, num_oov_buckets=3)

    def encode(word: Any) -> Any:
        code = table.lookup(word)
        return tf.cumsum(tf.one_hot(code, 4))

    tf.data.Dataset.from_tensor_slices(["a", "b", "c"]).map(encode).batch(2)
    call = recorded.call("map")
    assert call.function is not None
    lines = [(line.called, line.takes_batches) for line in call.function.batch_lines]
    assert lines == [("lookup", True), ("one_hot", True), ("cumsum", False)]


def test_random_numbers_are_drawn_in_a_vectorised_part(recorded: Recorded) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), 0.0)

    def noisy(word: Any) -> Any:
        noise = tf.random.uniform([2])
        return table.lookup(word) + noise

    lines = lines_of(noisy, tf.data.Dataset.from_tensor_slices(["a", "b"]), recorded)
    assert [(line.called, line.takes_batches) for line in lines] == [("uniform", False), ("lookup", True), ("", False)]


def test_parts_that_compute_something_else_for_one_element_are_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    def center(row: Any) -> Any:
        return row - tf.reduce_mean(row)

    dataset = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(12.0), [4, 3])).map(center).batch(2)
    call = recorded.call("map")
    whole = "def center_batch(row):\n    return advisor_vectorized_map(center, row, fallback_to_while_loop=False)\n"
    wrong = {
        "another graph than its function": "def center_batch(row):\n    return row * 2.0\n",
        "takes or returns a int instead": whole.replace("center, row", "lambda x: 3, row"),
        "its parts fail": "def center_batch(row):\n    return row.missing\n",
    }
    for reason, text in wrong.items():
        edit = VectorizeParts(call.id, text, "center_batch", "", 1)
        with pytest.raises(CannotVectorize, match=reason):
            recorded.replay(dataset, MoveAfter(call.id, recorded.call("batch").id), edit)
