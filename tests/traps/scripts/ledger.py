"""What the trap scripts share: costly work for a map, and a ledger of what the training saw."""

import hashlib
import json

import numpy as np
import tensorflow as tf


def busy(seed, rounds=4):
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
        self.seen = {}

    def train(self, epoch, *components):
        """Train on a batch, and keep its rows. Components are aligned along their first axis."""
        train_step(self.weights, components[0])
        self.seen.setdefault(epoch, []).append([np.asarray(component) for component in components])

    @property
    def rows(self):
        """Epoch -> its rows as text, in order."""
        return {
            epoch: [repr(row) for batch in batches for row in zip(*map(_plain, batch), strict=True)]
            for epoch, batches in self.seen.items()
        }

    def elements(self):
        """A digest of the rows of each epoch, in whichever order they came."""
        return [_digest(sorted(rows)) for rows in self.rows.values()]

    def order(self):
        """A digest of the rows of each epoch in their order."""
        return [_digest(rows) for rows in self.rows.values()]

    def counts(self):
        """Rows of each epoch."""
        return [len(rows) for rows in self.rows.values()]

    def distinct(self):
        """How many different rows there were in all epochs together."""
        return len({row for rows in self.rows.values() for row in rows})

    def all_epochs_differ(self):
        """Whether no two epochs held the same rows."""
        return len(set(self.elements())) == len(self.rows)

    def finish(self, **invariant):
        """Print what must not change."""
        print("INVARIANT " + json.dumps(invariant, sort_keys=True), flush=True)


def _plain(array):
    return (np.round(array.astype(np.float64), 4) if np.issubdtype(array.dtype, np.floating) else array).tolist()


def _digest(rows):
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:10]
