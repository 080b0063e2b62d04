"""A module that makes the dataset of an epoch. How hard its rows are, the script decides by assigning to LEVEL."""

import tensorflow as tf

LEVEL = 1


def features(row):
    """Some small ops, whose graph takes a while to trace."""
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return row * LEVEL + tf.cast(parts[-1] > 1e30, tf.int64)


def make_dataset(rows):
    """The dataset of an epoch."""
    return tf.data.Dataset.range(rows).map(features).batch(4)
