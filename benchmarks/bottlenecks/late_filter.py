"""A filter that keeps one element in four, after an expensive map on which it does not depend."""

import lab
import tensorflow as tf
from lab import tick, without


def render(index):
    if without("render"):
        return index, lab.constant(64, 64)
    phase = tf.random.uniform(()) + tf.cast(index, tf.float32)
    return index, tf.sort(tf.sort(tf.sin(phase * tf.reshape(tf.range(4096.0), (64, 64))), axis=0), axis=1)


def is_wanted(index, image):
    if without("filter"):
        return index % 4 == 0
    return tf.strings.regex_full_match(tf.strings.as_string(index % 4), "0")


def main():
    dataset = tf.data.Dataset.range(100_000_000)
    dataset = dataset.map(render)  # node: render
    dataset = dataset.filter(is_wanted)  # node: filter
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, (lab.constant(8, dtype=tf.int64), lab.constant(8, 64, 64)))
    else:
        dataset = dataset.batch(8)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for _, images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(64 * 64, 32)
lab.run(main)
