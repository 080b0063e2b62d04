"""A zip of a costly and a cheap branch, filtered: the filter's quick function waits for the pool that the map has."""

import tensorflow as tf


def heavy(x):
    m = tf.fill((128, 128), tf.cast(x, tf.float32))
    for _ in range(6):
        m = tf.matmul(m, m) / 128.0
    return m


costly = tf.data.Dataset.range(1_000_000).map(heavy)  # <- bottleneck
cheap = tf.data.Dataset.range(1_000_000).map(lambda x: x + 1)
dataset = tf.data.Dataset.zip((costly, cheap))
dataset = dataset.filter(lambda m, x: x % 2 == 0)
dataset = dataset.batch(4)
iterator = iter(dataset)
while True:
    next(iterator)
