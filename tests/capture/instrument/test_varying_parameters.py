"""Ops of which a parameter differs between the elements of a batch: TensorFlow itself refuses to convert exactly these."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.traced_functions import function_facts

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def varying(dataset, function) -> tuple[str, ...]:
    facts = function_facts(dataset.map(function), function, None)
    assert facts is not None
    return facts.varying_parameters


def converts(tf, dataset, function) -> bool:
    """Whether TensorFlow converts the function for a batch."""
    batch = next(iter(dataset.batch(4)))
    try:
        tf.function(lambda x: tf.vectorized_map(tf.function(function), x, fallback_to_while_loop=False))(batch)
    except (ValueError, NotImplementedError):
        return False
    return True


def test_what_is_found_is_what_tensorflow_refuses(tf):
    images = tf.data.Dataset.from_tensor_slices(tf.random.stateless_uniform([8, 5, 4, 3], [1, 2]))
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 1.0])
    rows = tf.data.Dataset.from_tensor_slices(["abcd", "bcda", "aabb", "dddd"]).map(
        lambda t: tf.io.decode_raw(t, tf.uint8)
    )
    cases = [
        (rows, lambda r: tf.reshape(r, [tf.shape(r)[0] // 2, 2]), ()),
        (rows, lambda r: tf.reshape(r, [tf.cast(r[0], tf.int32) * 0 + 2, 2]), ("Reshape",)),
        (images, lambda x: tf.image.random_hue(x, 0.1), ("AdjustHue",)),
        (images, lambda x: tf.image.random_saturation(x, 0.8, 1.2), ("AdjustSaturation",)),
        (images, lambda x: tf.image.random_contrast(x, 0.8, 1.2), ("AdjustContrastv2",)),
        (images, lambda x: tf.image.adjust_hue(x, tf.reduce_mean(x)), ("AdjustHue",)),
        (images, lambda x: tf.image.adjust_hue(x, 0.1), ()),
        (images, lambda x: tf.image.random_brightness(x, 0.1), ()),
        (images, lambda x: tf.image.random_crop(x, [3, 3, 3]), ()),
        (images, lambda x: tf.image.random_flip_left_right(x), ()),
        (images, lambda x: tf.reshape(x, [tf.shape(x)[0], -1]) * tf.random.uniform(tf.shape(x)[:1])[:, None], ()),
        (images, lambda x: tf.reduce_sum(x, axis=[0, 1]) / tf.linspace(1.0, 2.0, 3), ()),
        (numbers, lambda n: tf.one_hot(tf.cast(n, tf.int32), 4) * n, ()),
        (numbers, lambda n: tf.fill([3], n) + tf.range(3.0), ()),
        (numbers, lambda n: tf.raw_ops.LinSpace(start=0.0, stop=n, num=3), ("LinSpace",)),
        (numbers, lambda n: tf.linspace(0.0, n, 3), ()),
        (numbers, lambda n: tf.constant([5.0, 6.0, 7.0, 8.0])[tf.cast(n, tf.int32)], ("StridedSlice",)),
    ]
    for number, (dataset, function, found) in enumerate(cases):
        assert varying(dataset, function) == found, number
        assert converts(tf, dataset, function) == (not found), number


def test_a_number_drawn_inside_a_function_that_is_called_differs_too(tf):
    images = tf.data.Dataset.from_tensor_slices(tf.random.stateless_uniform([8, 5, 4, 3], [1, 2]))
    drawn = tf.function(lambda: tf.random.uniform([], -0.1, 0.1))
    assert varying(images, lambda x: tf.image.adjust_hue(x, drawn())) == ("AdjustHue",)
    assert varying(images, lambda x: tf.image.adjust_hue(x, 0.1)) == ()
