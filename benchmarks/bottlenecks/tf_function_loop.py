"""The epoch's loop over the dataset is inside a `tf.function`, so no step is visible in Python."""

import lab
import tensorflow as tf
from lab import tick, without

STEPS = 40


def make_signal(index):
    if without("signal"):
        return lab.constant(4096)
    return tf.sin(tf.cast(index, tf.float32) * tf.range(4096.0))


def disturb(signal):
    if without("disturb"):
        return lab.constant(4096)
    spectrum = tf.signal.rfft(signal + tf.random.normal((4096,), stddev=0.1))
    return tf.sort(tf.signal.irfft(spectrum * tf.complex(tf.random.normal((2049,)), 0.0)))


@tf.function
def train_epoch(dataset):
    for signals in dataset:
        train_step(signals)


def main():
    dataset = tf.data.Dataset.range(16 * STEPS)
    dataset = dataset.map(make_signal)  # node: signal
    dataset = dataset.map(disturb)  # node: disturb
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 4096))
    else:
        dataset = dataset.batch(16, drop_remainder=True)  # node: batch

    while True:
        train_epoch(dataset)
        if tick(STEPS):
            break


train_step = lab.dense_step(4096, 32)
lab.run(main)
