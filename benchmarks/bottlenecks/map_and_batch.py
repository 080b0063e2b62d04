"""A random map, then batch: Grappler fuses the two into `MapAndBatch` with parallelism 1, and no `Map` iterator exists."""

import lab
import tensorflow as tf
from lab import tick, without


def read(index):
    if without("read"):
        return lab.constant(96, 96)
    return tf.cos(tf.cast(index, tf.float32) * tf.reshape(tf.range(96.0 * 96.0), (96, 96)))


def distort(image):
    if without("distort"):
        return lab.constant(96, 96)
    noisy = image + tf.random.normal((96, 96), stddev=0.1)
    return tf.sort(tf.sort(noisy, axis=0), axis=1)


def main():
    dataset = (
        tf.data.Dataset.range(1_000_000)
        .map(read)  # node: read
        .map(distort)  # node: distort
    )
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 96, 96))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(96 * 96, 32)
lab.run(main)
