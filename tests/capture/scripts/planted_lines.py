"""Twelve functions with a known costly line: six of TensorFlow ops, six of Python. A comment `hot` marks each line."""

import zlib

import numpy as np
import tensorflow as tf

PIXELS = np.random.default_rng(0).integers(0, 255, (256, 256, 3)).astype(np.uint8)
JPEG = tf.io.encode_jpeg(PIXELS).numpy()
PACKED = zlib.compress(PIXELS.tobytes())
TEXT = ",".join(str(number) for number in range(4000))


def decode(number):
    data = tf.gather([JPEG, JPEG], number % 2)
    image = tf.io.decode_jpeg(data, channels=3)  # hot: decode
    image = tf.cast(image, tf.float32)[:16, :16]
    return tf.reduce_mean(image) + tf.cast(number, tf.float32)


def branch(number):
    value = tf.cast(number, tf.float32)
    if value >= 0.0:
        rows = tf.reshape(tf.range(40000.0) * (value + 1.0), (200, 200))
        value = tf.reduce_sum(tf.linalg.matmul(rows, rows) @ rows @ rows @ rows @ rows)  # hot: branch
    else:
        value = value * 2.0
    return value


def loop(number):
    values = tf.random.uniform((20000,)) + tf.cast(number, tf.float32)
    for _ in tf.range(3):
        values = values * 1.5
        values = tf.sort(values)  # hot: loop
    return tf.reduce_sum(values)


def sorted_values(values):
    values = values + 1.0
    return tf.argsort(values)  # hot: helper


def helper(number):
    values = tf.random.uniform((30000,)) * tf.cast(number, tf.float32)
    order = sorted_values(values)
    return tf.reduce_sum(order)


@tf.function
def convolve(image):
    image = image / 255.0
    return tf.nn.conv2d(image[None], tf.ones((5, 5, 3, 4)), 1, "SAME")  # hot: inner_function


def inner_function(number):
    image = tf.cast(tf.constant(PIXELS), tf.float32) + tf.cast(number, tf.float32)
    return tf.reduce_mean(convolve(image))


def text(number):
    line = tf.strings.join([TEXT, tf.strings.as_string(number)], ",")
    words = tf.strings.split(line, ",")
    values = tf.strings.to_number(words[:100])
    found = tf.strings.regex_replace(line, "([0-9])([0-9]*),", r"\2\1;")  # hot: text
    return tf.reduce_sum(values) + tf.cast(tf.strings.length(found), tf.float32)


def pure_python(number):
    total = float(number)
    for value in range(240000):
        total += value * 0.5  # hot: pure_python
    return np.float32(total)


def numpy_sort(number):
    values = np.random.default_rng(int(number)).random(150000)
    values = values * 2.0
    values = np.sort(values, kind="stable")  # hot: numpy_sort
    return np.float32(values[0])


def row(values):
    doubled = [value * 2 for value in values[:10]]
    return sum(sorted([hash((value, 3)) for value in range(40000)])) + doubled[0]  # hot: python_helper


def python_helper(number):
    total = row([int(number)] * 100)
    return np.float32(total % 7)


def unpack(number):
    data = zlib.decompress(PACKED)
    for _ in range(10):
        data = zlib.compress(data[:60000], 6) and data  # hot: unpack
    return np.float32(len(data))


def pillow(number):
    from PIL import Image

    image = Image.fromarray(PIXELS)
    image = image.rotate(3)
    image = image.resize((900, 900), Image.LANCZOS)  # hot: pillow
    return np.float32(image.size[0])


def records():
    number = 0
    while True:
        number += 1
        words = TEXT.split(",") * 60
        values = [float(word) for word in words]  # hot: records
        yield np.float32(values[number % 100])


def python_map(function):
    return lambda number: tf.numpy_function(function, [number], tf.float32)


def eager_map(function):
    return lambda number: tf.py_function(lambda value: function(value.numpy()), [number], tf.float32)


def pipelines():
    numbers = tf.data.Dataset.range(10**9)
    names = ["decode", "branch", "loop", "helper", "inner_function", "text"]
    made = [numbers.map(globals()[name]) for name in names]
    made += [numbers.map(python_map(function)) for function in (pure_python, numpy_sort, python_helper, unpack)]
    made.append(numbers.map(eager_map(pillow)))
    made.append(tf.data.Dataset.from_generator(records, output_signature=tf.TensorSpec((), tf.float32)))
    return made


for _ in tf.data.Dataset.zip(tuple(pipelines())).batch(2):
    pass
