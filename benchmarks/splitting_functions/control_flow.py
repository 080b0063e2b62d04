# mypy: disable-error-code="untyped-decorator"
"""Functions with control flow, state, or random numbers of their own."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from splitting_functions.common import DATA, ROWS, augment, case, decode, jpegs, rows

VARIABLE = tf.Variable(2.0)
GENERATOR = tf.random.Generator.from_seed(7)
TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["0", "1", "2"], [0, 10, 20]), -1)


@case("control flow", "AutoGraph `if` before")
def _() -> Any:
    def load(row: Any) -> Any:
        if tf.reduce_mean(row) > 0:
            row = row * 2.0
        else:
            row = -row
        row = tf.math.l2_normalize(row)
        return row + tf.random.normal([6])

    return rows(6).map(load)


@case("control flow", "AutoGraph `for` before, `if` with random numbers after")
def _() -> Any:
    def load(row: Any) -> Any:
        total = tf.zeros([])
        for index in tf.range(6):
            total += tf.exp(row[index])
        row = row / total
        if tf.random.uniform([]) > 0.5:
            row = tf.reverse(row, [0])
        return row

    return rows(6).map(load)


@case("control flow", "`with tf.name_scope` before")
def _() -> Any:
    def load(data: Any) -> Any:
        with tf.name_scope("decoding"):
            image = decode(data)
        return augment(image)

    return jpegs().map(load)


@case("control flow", "Python loop over three scales before")
def _() -> Any:
    def load(data: Any) -> Any:
        image = decode(data)
        for side in (12, 10, 8):
            image = tf.image.resize(image, (side, side))
        return tf.image.random_flip_left_right(image)

    return jpegs().map(load)


@case("control flow", "`tf.map_fn` with random numbers after")
def _() -> Any:
    def load(row: Any) -> Any:
        row = tf.cumsum(tf.exp(row))
        return tf.map_fn(lambda value: value + tf.random.uniform([]), row)

    return rows(6).map(load)


@case("control flow", "an early `return` (AutoGraph)")
def _() -> Any:
    def load(row: Any) -> Any:
        row = tf.exp(row)
        if tf.reduce_sum(row) > 1e9:
            return row
        return row + tf.random.normal([6])

    return rows(6).map(load)


@case("decorators", "`@tf.function`")
def _() -> Any:
    @tf.function
    def load(data: Any) -> Any:
        image = decode(data)
        return augment(image)

    return jpegs().map(load)


@case("random state", "`seed=` in the ops")
def _() -> Any:
    def load(data: Any) -> Any:
        image = decode(data)
        image = tf.image.random_flip_left_right(image, seed=5)
        return image + tf.random.uniform([], seed=6)

    return jpegs().map(load)


@case("random state", "`tf.random.Generator`")
def _() -> Any:
    def load(data: Any) -> Any:
        image = decode(data)
        return image + GENERATOR.normal([16, 16, 3])

    return jpegs().map(load)


@case("random state", "a helper that draws inside")
def _() -> Any:
    def jitter(image: Any) -> Any:
        return augment(image) + 1.0

    def load(data: Any) -> Any:
        image = decode(data)
        image = jitter(image)
        return image / 255.0

    return jpegs().map(load)


@case("state", "a static table")
def _() -> Any:
    def load(key: Any) -> Any:
        number = TABLE.lookup(key)
        return tf.cast(number, tf.float32) + tf.random.uniform([])

    return DATA.from_tensor_slices([str(n % 4) for n in range(ROWS)]).map(load)


@case("state", "a variable in the first half")
def _() -> Any:
    def load(row: Any) -> Any:
        row = row * VARIABLE
        return row + tf.random.normal([6])

    return rows(6).map(load)


@case("state", "`tf.print` in the first half")
def _() -> Any:
    def load(row: Any) -> Any:
        tf.print("loading", output_stream="file:///dev/null")
        row = tf.exp(row)
        return row + tf.random.normal([6])

    return rows(6).map(load)
