# mypy: disable-error-code="untyped-decorator"
"""Functions that compute with Python values, or are written in a way that is not cut."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf

from splitting_functions.common import augment, case, decode, jpegs, labelled, rows

SIZE = 12
RANDOM = np.random.default_rng(3)


@case("Python values", "a list")
def _() -> Any:
    def load(row: Any) -> Any:
        parts = [tf.exp(row), tf.sin(row)]
        noise = tf.random.normal([6])
        return parts[0] + noise, parts[1]

    return rows(6).map(load)


@case("Python values", "a size as a Python number")
def _() -> Any:
    def load(data: Any) -> Any:
        image = decode(data)
        side = image.shape[0]
        return tf.image.random_crop(image, (side - 4, side - 4, 3))

    return jpegs().map(load)


@case("Python values", "a single tuple")
def _() -> Any:
    def load(row: Any) -> Any:
        pair = (tf.exp(row), tf.sin(row))
        return pair[0] + tf.random.normal([6]), pair[1]

    return rows(6).map(load)


@case("Python values", "NumPy's random numbers while tracing")
def _() -> Any:
    def load(row: Any) -> Any:
        row = tf.exp(row) + RANDOM.normal()
        return row + tf.random.normal([6])

    return rows(6).map(load)


@case("Python values", "a function that is defined before")
def _() -> Any:
    def load(data: Any) -> Any:
        image = decode(data)
        scaled = lambda value: value / 255.0  # noqa: E731
        image = tf.image.random_flip_left_right(image)
        return scaled(image)

    return jpegs().map(load)


@case("form", "random crop while decoding")
def _() -> Any:
    def load(data: Any) -> Any:
        offset = tf.random.uniform([], 0, 8, tf.int32)
        image = tf.image.decode_and_crop_jpeg(data, [offset, offset, 8, 8])
        return tf.image.resize(image, (16, 16))

    return jpegs().map(load)


@case("form", "`try` before")
def _() -> Any:
    def load(row: Any) -> Any:
        try:
            row = tf.ensure_shape(tf.exp(row), [6])
        except ValueError:
            row = tf.zeros([6])
        return row + tf.random.normal([6])

    return rows(6).map(load)


@case("form", "everything inside one `with`")
def _() -> Any:
    def load(data: Any) -> Any:
        with tf.name_scope("loading"):
            image = decode(data)
            return augment(image)

    return jpegs().map(load)


@case("form", "a method")
def _() -> Any:
    class Loader:
        def load(self, data: Any) -> Any:
            image = decode(data)
            return augment(image)

    return jpegs().map(Loader().load)


@case("form", "a method, in its own class")
def _() -> Any:
    class Images:
        side = 12

        def prepare(self, data: Any, delta: float = 9.0) -> Any:
            side = self.side
            image = tf.image.resize(decode(data), (side, side))
            return tf.image.random_brightness(image, delta)

        def dataset(self) -> Any:
            return jpegs().map(self.prepare)

    return Images().dataset()


@case("form", "a method, in a lambda")
def _() -> Any:
    class Pictures:
        def brighten(self, data: Any, label: Any, delta: float) -> Any:
            image = decode(data)
            return tf.image.random_brightness(image, delta), label

        def dataset(self, delta: float) -> Any:
            return labelled().map(lambda data, label: self.brighten(data, label, delta))

    return Pictures().dataset(9.0)


@case("form", "`functools.partial`")
def _() -> Any:
    def load(delta: float, data: Any) -> Any:
        image = decode(data)
        return tf.image.random_brightness(image, delta)

    return jpegs().map(functools.partial(load, 9.0))


@case("form", "`functools.partial` with names, around a function that is used twice")
def _() -> Any:
    def load(data: Any, side: int, *, is_training: bool) -> Any:
        image = tf.image.resize(decode(data), (side, side))
        return augment(image) if is_training else image

    side = 12
    jpegs().map(functools.partial(load, side=side, is_training=False))
    return jpegs().map(functools.partial(load, side=side, is_training=True), num_parallel_calls=tf.data.AUTOTUNE)


@case("form", "a lambda that calls it with further arguments")
def _() -> Any:
    def load(data: Any, label: Any, side: int, delta: float = 3.0) -> Any:
        image = tf.image.resize(decode(data), (side, side))
        return tf.image.random_brightness(image, delta), label

    side, settings = 12, SimpleNamespace(delta=9.0)
    return labelled().map(lambda data, label: load(data, label, side, delta=settings.delta))


@case("form", "`*args`")
def _() -> Any:
    def load(*args: Any) -> Any:
        image = decode(args[0])
        return augment(image), args[1]

    return labelled().map(load)


@case("form", "`nonlocal`")
def _() -> Any:
    traced = 0

    def load(data: Any) -> Any:
        nonlocal traced
        traced += 1
        image = decode(data)
        return augment(image)

    return jpegs().map(load)


@case("form", "another decorator")
def _() -> Any:
    def twice(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(data: Any) -> Any:
            return function(data) * 2.0

        return called

    @twice
    def load(data: Any) -> Any:
        image = decode(data)
        return augment(image)

    return jpegs().map(load)


@case("form", "an assignment expression")
def _() -> Any:
    def load(data: Any) -> Any:
        image = (raw := decode(data)) / 255.0
        return augment(image) + raw

    return jpegs().map(load)


@case("form", "a value that exists on one way only")
def _() -> Any:
    def load(row: Any) -> Any:
        row = tf.exp(row)
        if SIZE > 10:
            scale = tf.reduce_sum(row)
        return row * scale + tf.random.normal([6])

    return rows(6).map(load)
