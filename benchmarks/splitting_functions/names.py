# mypy: disable-error-code="untyped-decorator"
"""Functions that use names of other places, or whose halves share some."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from splitting_functions.common import DATA, ROWS, case, decode, jpegs

SIZE = 12


@case("names", "a variable of the enclosing function")
def _() -> Any:
    size = (8, 8)
    shift = tf.constant(3.0)

    def load(data: Any) -> Any:
        image = tf.image.resize(decode(data), size) + shift
        return tf.image.random_brightness(image, 9.0) - shift

    return jpegs().map(load)


@case("names", "a parameter with a default")
def _() -> Any:
    def load(data: Any, delta: float = 9.0) -> Any:
        image = decode(data)
        return tf.image.random_brightness(image, delta)

    return jpegs().map(load)


@case("names", "a keyword-only parameter and a global name")
def _() -> Any:
    def load(data: Any, *, size: int = SIZE) -> Any:
        image = tf.image.resize(decode(data), (size, size))
        return tf.image.random_crop(image, (size - 2, size - 2, 3))

    return jpegs().map(load)


@case("names", "constants of both halves")
def _() -> Any:
    def load(data: Any) -> Any:
        side = 16
        scale = 1 / 255
        image = tf.image.resize(tf.io.decode_jpeg(data, channels=3), (side, side)) * scale
        return tf.image.random_crop(image, (8, 8, 3)) + tf.random.uniform((), 0, scale)

    return jpegs().map(load)


@case("names", "a dictionary that gets another key")
def _() -> Any:
    def prepare(features: Any) -> Any:
        features["norm"] = tf.norm(features["x"])
        x = features["x"] / features["norm"]
        features["x"] = x + tf.random.normal(tf.shape(x))
        return features

    return DATA.from_tensor_slices({"x": tf.random.stateless_normal([ROWS, 6], [1, 2])}).map(prepare)


@case("names", "a parsed `tf.Example`")
def _() -> Any:
    def example(number: int) -> bytes:
        value = tf.train.Feature(float_list=tf.train.FloatList(value=[number / 7, number * 2.0]))
        data: bytes = tf.train.Example(features=tf.train.Features(feature={"x": value})).SerializeToString()
        return data

    def parse(record: Any) -> Any:
        parsed = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([2], tf.float32)})
        x = parsed["x"] * 2.0
        return x + tf.random.normal([2])

    return DATA.from_tensor_slices([example(n) for n in range(ROWS)]).map(parse)


@case("names", "a ragged tensor")
def _() -> Any:
    def characters(text: Any) -> Any:
        parts = tf.strings.split(tf.strings.split(text, ";"), ",")
        numbers = tf.strings.to_number(parts)
        return numbers + tf.random.uniform([])

    return DATA.from_tensor_slices([f"{n},1;2,{n},3" for n in range(ROWS)]).map(characters)
