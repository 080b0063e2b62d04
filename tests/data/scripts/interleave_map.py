"""A costly map inside an interleave: nothing parallelises it, and a buffer stands between it and the consumer."""

import tensorflow as tf


def heavy(x):
    m = tf.fill((96, 96), tf.cast(x, tf.float32))
    for _ in range(8):
        m = tf.matmul(m, m) / 96.0
    return m


def shard(i):
    return tf.data.Dataset.range(100_000).map(heavy)  # <- bottleneck


dataset = tf.data.Dataset.range(1000).interleave(shard, cycle_length=4).batch(4)
for batch in dataset:
    tf.reduce_sum(batch)
