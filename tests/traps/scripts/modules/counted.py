"""A module that makes the dataset of an epoch, and counts how many it has made."""

import tensorflow as tf

_made = []


def features(row):
    """Some small ops, whose graph takes a while to trace."""
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return row + tf.cast(parts[-1] > 1e30, tf.int64)


def make_dataset(rows):
    """The dataset of an epoch, which has more rows from the sixth on."""
    _made.append(rows)
    return tf.data.Dataset.range(rows + max(0, len(_made) - 5)).map(features).batch(4)
