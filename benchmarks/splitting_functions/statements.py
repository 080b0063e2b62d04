# mypy: disable-error-code="untyped-decorator"
"""Functions of several statements, and of nested calls."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from splitting_functions.common import DATA, ROWS, augment, case, decode, jpegs, labelled, rows


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
