"""A large shuffle buffer after an expensive map: filling it takes seconds, but the map causes them."""

import lab
import tensorflow as tf
from lab import tick, without


def simulate(index):
    if without("simulate"):
        return lab.constant(1024)
    walk = tf.cumsum(tf.random.normal((1024,))) + tf.cast(index, tf.float32)
    return tf.sort(tf.signal.irfft(tf.signal.rfft(walk)))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(simulate)  # node: simulate
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(4000)  # node: shuffle
    if without("batch"):
        dataset = lab.without_batch(dataset, 64, lab.constant(64, 1024))
    else:
        dataset = dataset.batch(64)  # node: batch

    for walks in dataset:
        train_step(walks)
        if tick():
            break


train_step = lab.dense_step(1024, 64)
lab.run(main)
