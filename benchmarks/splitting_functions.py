# mypy: disable-error-code="untyped-decorator"
"""Functions of maps, as scripts have them, that decode or compute something and draw random numbers. Used by `splitting.py`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

ROWS = 24
DATA = tf.data.Dataset
Case = tuple[str, str, Callable[[], Any]]
CASES: list[Case] = []
"""(kind, what the function does, function that creates the dataset)."""
SIZE = 12
VARIABLE = tf.Variable(2.0)
GENERATOR = tf.random.Generator.from_seed(7)
TABLE = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["0", "1", "2"], [0, 10, 20]), -1)
RANDOM = np.random.default_rng(3)


def case(kind: str, name: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a function that creates a dataset to `CASES`."""

    def add(create: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append((kind, name, create))
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


def load_module_level(data: Any) -> Any:
    """Decode, resize and flip."""
    image = tf.io.decode_jpeg(data, channels=3)
    image = tf.image.resize(image, (16, 16))
    return tf.image.random_flip_left_right(image)


def load_for_both(data: Any) -> Any:
    """Decode and augment."""
    image = decode(data)
    return augment(image) / 255.0


@case("statements", "decode, resize; flip")
def _() -> Any:
    return jpegs().map(load_module_level, num_parallel_calls=2)


@case("statements", "decode; augment and scale, the label passed through")
def _() -> Any:
    def load(data: Any, label: Any) -> Any:
        """Load an image.

        Its label is passed on.
        """
        # Decode first.
        image = decode(data)

        # Then augment.
        image = augment(image)
        return image / 255.0, label

    return labelled().shuffle(8, seed=1).map(load)


@case("statements", "the parts of a tuple: image, its mean, a one-hot label")
def _() -> Any:
    def load(data: Any, label: Any) -> Any:
        image, mean = decode(data), tf.constant(0.5)
        mean, depth = tf.reduce_mean(image), tf.one_hot(label % 5, 5)
        noise = tf.random.normal(tf.shape(image))
        return image - mean + noise, depth

    return labelled().map(load)


@case("statements", "used by two maps")
def _() -> Any:
    jpegs().take(4).map(load_for_both)
    return jpegs().map(load_for_both)


@case("statements", "spectrogram; noise")
def _() -> Any:
    def listen(wave: Any) -> Any:
        spectrum = tf.abs(tf.signal.stft(wave, 16, 8))
        spectrum = tf.math.log(spectrum + 1e-6)
        return spectrum + tf.random.normal(tf.shape(spectrum), stddev=0.1)

    return rows(64).map(listen)


@case("statements", "tokens; drop some at random")
def _() -> Any:
    def tokens(text: Any) -> Any:
        words = tf.strings.split(tf.strings.lower(text))
        numbers = tf.strings.to_hash_bucket_fast(words, 1000)
        keep = tf.random.uniform(tf.shape(numbers)) > 0.1
        return tf.where(keep, numbers, 0)

    return DATA.from_tensor_slices([f"Line {n} of {n * n} lines" for n in range(ROWS)]).map(tokens)


@case("nested calls", "`lambda data: augment(decode(data))`")
def _() -> Any:
    return jpegs().map(lambda data: augment(decode(data)), num_parallel_calls=tf.data.AUTOTUNE)


@case("nested calls", "`lambda data, label: (augment(decode(data)), label)`")
def _() -> Any:
    return labelled().map(lambda data, label: (augment(decode(data)), label))


@case("nested calls", "`return augment(decode(data) / 255.0)` after a docstring")
def _() -> Any:
    def load(data: Any) -> Any:
        """Decode and augment."""
        return augment(decode(data) / 255.0)

    return jpegs().map(load)


@case("nested calls", "`random_brightness(random_contrast(decode(data)))`")
def _() -> Any:
    def load(data: Any) -> Any:
        return tf.image.random_brightness(tf.image.random_contrast(decode(data), 0.5, 1.5), max_delta=9.0)

    return jpegs().map(load)


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


@case("control flow", "an early `return` (AutoGraph)")
def _() -> Any:
    def load(row: Any) -> Any:
        row = tf.exp(row)
        if tf.reduce_sum(row) > 1e9:
            return row
        return row + tf.random.normal([6])

    return rows(6).map(load)


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


@case("form", "`functools.partial`")
def _() -> Any:
    def load(delta: float, data: Any) -> Any:
        image = decode(data)
        return tf.image.random_brightness(image, delta)

    return jpegs().map(functools.partial(load, 9.0))


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
