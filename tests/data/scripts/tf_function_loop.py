"""Both kinds of loops inside a tf.function: over an iterator, and over the dataset itself (which AutoGraph puts in a scan)."""

import tensorflow as tf


def heavy(x):
    m = tf.random.normal((96, 96)) + tf.cast(x, tf.float32)
    for _ in range(6):
        m = tf.matmul(m, m) / 96.0
    return m


dataset = (
    tf.data.Dataset.range(1_000_000)
    .map(heavy)  # <- bottleneck
    .batch(4)
)


@tf.function
def train(dataset):
    total = 0.0
    for batch in dataset:
        total += tf.reduce_sum(tf.matmul(batch, batch))
    return total


train(dataset)
