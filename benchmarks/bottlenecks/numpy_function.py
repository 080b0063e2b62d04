"""An augmentation in NumPy through `tf.numpy_function`, with a fixed number of parallel calls that the lock makes useless."""

import lab
import numpy as np
import tensorflow as tf
from lab import tick, without

RANDOM = np.random.default_rng(0)


def elastic(signal):
    positions = np.arange(signal.shape[0]) + np.cumsum(RANDOM.normal(size=signal.shape[0]))
    bent = [float(np.interp(position, np.arange(signal.shape[0]), signal)) for position in positions[:48]]
    return np.resize(np.asarray(bent, np.float32), signal.shape[0])


def augment(signal):
    if without("augment"):
        return lab.constant(2048)
    return tf.ensure_shape(tf.numpy_function(elastic, [signal], tf.float32), (2048,))


def synthesize(index):
    if without("synthesize"):
        return lab.constant(2048)
    return tf.sin(tf.cast(index, tf.float32) * tf.range(2048.0))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(synthesize, num_parallel_calls=2)  # node: synthesize
    dataset = dataset.map(augment, num_parallel_calls=2)  # node: augment
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 2048))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.prefetch(1)

    for signals in dataset:
        train_step(signals)
        if tick():
            break


train_step = lab.dense_step(2048, 64)
lab.run(main)
