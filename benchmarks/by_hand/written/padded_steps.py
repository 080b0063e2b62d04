"""Sequences of varying length: scaled and jittered one by one, then padded."""

import tensorflow as tf
import workload

EPOCHS = 3
LENGTHS = tf.random.stateless_uniform([80_000], [9, 9], 5, 60, tf.int32)


def sequence(length):
    steps = tf.cast(tf.range(length), tf.float32)
    wave = tf.sin(steps / 5.0) + tf.random.normal([length], stddev=0.1)
    return tf.clip_by_value(wave, -1.0, 1.0)


def dataset():
    return tf.data.Dataset.from_tensor_slices(LENGTHS).map(sequence).padded_batch(64)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
