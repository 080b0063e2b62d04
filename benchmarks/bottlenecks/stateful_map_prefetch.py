"""A random map over batches: TensorFlow will not parallelise it by itself. The root waits on the prefetch above it."""

import lab
import tensorflow as tf
from lab import tick, without


def load(index):
    if without("load"):
        return lab.constant(64, 64)
    return tf.sin(tf.cast(index, tf.float32) + tf.reshape(tf.range(4096.0), (64, 64)))


def augment(images):
    if without("augment"):
        return lab.constant(16, 64, 64)
    noisy = images + tf.random.normal(tf.shape(images), stddev=0.1)
    return tf.sort(tf.sort(noisy, axis=2), axis=1)


def main():
    dataset = tf.data.Dataset.range(1_000_000)
    dataset = dataset.map(load)  # node: load
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 64, 64))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.map(augment)  # node: augment
    dataset = dataset.prefetch(2)

    for images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(64 * 64, 32)
lab.run(main)
