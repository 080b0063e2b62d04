"""What the trap scripts share: costly work for a map, and a ledger of what the training saw."""

import hashlib
import json

import numpy as np
import tensorflow as tf


def busy(seed, rounds=7):
    """Some milliseconds of work that depends on `seed`; always 0 (int64), which TensorFlow cannot know beforehand."""
    matrix = tf.fill([192, 192], tf.cast(seed, tf.float32) * 1e-6 + 0.01)
    for _ in range(rounds):
        matrix = tf.linalg.matmul(matrix, matrix) * 0.5 + 0.01
    return tf.cast(tf.reduce_max(matrix) > 1e30, tf.int64)


def train_step(weights, batch):
    """One step of a small linear model."""
    x = tf.reshape(tf.cast(batch, tf.float32), [-1, 1])
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(x * weights - 1.0))
    weights.assign_sub(1e-6 * tf.clip_by_value(tape.gradient(loss, weights), -1.0, 1.0))


class Ledger:
    """Rows in the order in which the training saw them, epoch by epoch."""

    def __init__(self):
        self.weights = tf.Variable([[0.5]])
        self.rows = {}
        self.sizes = {}

    def train(self, epoch, *components):
        """Train on a batch, and write its rows down. Components are aligned along their first axis."""
        train_step(self.weights, components[0])
        arrays = [np.asarray(component) for component in components]
        rows = [repr([_plain(array[i]) for array in arrays]) for i in range(len(arrays[0]))]
        self.rows.setdefault(epoch, []).extend(rows)
        self.sizes.setdefault(epoch, []).append(len(rows))

    def elements(self):
        """A digest of the rows of each epoch, in whichever order they came."""
        return [_digest(sorted(rows)) for rows in self.rows.values()]

    def order(self):
        """A digest of the rows of each epoch in their order."""
        return [_digest(rows) for rows in self.rows.values()]

    def counts(self):
        """Rows of each epoch."""
        return [len(rows) for rows in self.rows.values()]

    def batches(self):
        """Sizes of the batches of each epoch."""
        return list(self.sizes.values())

    def distinct(self):
        """How many different rows there were in all epochs together."""
        return len({row for rows in self.rows.values() for row in rows})

    def all_epochs_differ(self):
        """Whether no two epochs held the same rows."""
        return len(set(self.elements())) == len(self.rows)

    def finish(self, **invariant):
        """Print what must not change."""
        print("INVARIANT " + json.dumps(invariant, sort_keys=True), flush=True)


def _plain(value):
    if np.issubdtype(np.asarray(value).dtype, np.floating):
        return np.round(np.asarray(value, np.float64), 4).tolist()
    return value.tolist() if hasattr(value, "tolist") else value


def _digest(rows):
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:10]
