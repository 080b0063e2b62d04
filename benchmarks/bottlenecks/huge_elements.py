"""Volumes of 16 MiB in batches of eight: most of the work is copying them into the batch."""

import lab
import tensorflow as tf
from lab import tick, without


def shift(index, volume):
    if without("shift"):
        return volume
    return tf.reshape(volume, (256, 128, 128))


@tf.function
def train_step(volumes):
    corner = tf.reshape(volumes[:, ::64, ::64, ::64], (-1, 16))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(corner @ weights - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = tf.data.Dataset.zip((dataset, tf.data.Dataset.from_tensors(VOLUME).repeat()))
    dataset = dataset.map(shift)  # node: shift
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, BATCH)
    else:
        dataset = dataset.batch(8)  # node: batch
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = False
    dataset = dataset.with_options(options)

    for volumes in dataset:
        train_step(volumes)
        if tick():
            break


VOLUME = tf.random.normal((256, 128, 128))
BATCH = tf.zeros((8, 256, 128, 128))
weights = tf.Variable(tf.random.normal((16, 1)))
lab.run(main)
