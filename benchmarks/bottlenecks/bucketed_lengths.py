"""Sequences grouped by length (`bucket_by_sequence_length`: group_by_window), produced by an expensive random map."""

import lab
import tensorflow as tf
from lab import tick, without


def make_sequence(index):
    length = 64 + tf.cast(index * 37 % 192, tf.int32)
    if without("sequence"):
        return tf.zeros((length, 8))
    steps = tf.random.normal((length * 8, 8))
    return tf.sort(tf.cumsum(tf.sort(steps, axis=0)), axis=0)[:length]


def scale(sequence):
    if without("scale"):
        return sequence
    return sequence / tf.reduce_max(tf.abs(sequence))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(make_sequence)  # node: sequence
    dataset = dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE)  # node: scale
    dataset = dataset.bucket_by_sequence_length(
        lambda sequence: tf.shape(sequence)[0], bucket_boundaries=[128, 192], bucket_batch_sizes=[16, 16, 16]
    )

    for sequences in dataset:
        train_step(sequences[:, :64])
        if tick():
            break


train_step = lab.dense_step(64 * 8, 128)
lab.run(main)
