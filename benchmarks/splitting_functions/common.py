# mypy: disable-error-code="untyped-decorator"
"""What the functions have in common: the list of cases, the data, and functions that they call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

ROWS = 24
DATA = tf.data.Dataset
Case = tuple[str, str, Callable[[], Any]]
"""(kind, what the function does, function that creates the dataset)."""
ADDED: list[Case] = []
"""The cases of the modules that were imported."""


def case(kind: str, name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a function that creates a dataset to the cases."""

    def add(create: Callable[[], Any]) -> Callable[[], Any]:
        ADDED.append((kind, name, create))
        return create

    return add


def jpegs() -> Any:
    """Encoded images."""
    values = tf.random.stateless_uniform([ROWS, 24, 20, 3], [1, 2], 0, 256, tf.int32)
    return DATA.from_tensor_slices([tf.io.encode_jpeg(tf.cast(value, tf.uint8)) for value in values])


def rows(*shape: int) -> Any:
    """Rows of numbers that look random."""
    return DATA.from_tensor_slices(tf.random.stateless_normal([ROWS, *shape], [1, 2]))


def labelled() -> Any:
    """Encoded images with labels."""
    return DATA.zip((jpegs(), DATA.range(ROWS)))


def decode(data: Any) -> Any:
    """Decode and resize."""
    return tf.image.resize(tf.io.decode_jpeg(data, channels=3), (16, 16))


def augment(image: Any) -> Any:
    """Flip and brighten at random."""
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_brightness(image, 9.0)
