"""A prefetch between two random maps: the costly one works below it, in a thread of its own."""

import lab
import tensorflow as tf
from lab import tick, without


def render(index):
    if without("render"):
        return lab.constant(64, 64)
    noise = tf.random.normal((64, 64)) + tf.cast(index, tf.float32)
    return tf.linalg.qr(tf.linalg.qr(noise).q + noise).q


def jitter(image):
    if without("jitter"):
        return lab.constant(64, 64)
    return image + tf.random.normal((64, 64))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(render)  # node: render
    dataset = dataset.prefetch(16)
    dataset = dataset.map(jitter)  # node: jitter
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64))
    else:
        dataset = dataset.batch(8)  # node: batch

    for images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(64 * 64, 32)
lab.run(main)
