"""Scripts with a function that is vectorised in parts, and the same scripts as they are written then."""

from __future__ import annotations

import re

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
