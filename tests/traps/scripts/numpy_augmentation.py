"""Augmentation in NumPy: the noise is drawn from NumPy's global state, which TensorFlow knows nothing of."""

import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "NumPy and Python random state",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(augment)", "dataset.map(augment).cache()"],
    "may_change": {},
}
ROWS, EPOCHS = 48, 6


def noise(row):
    return row + np.random.randint(1_000_000)


def augment(row):
    noisy = tf.numpy_function(noise, [row], tf.int64)
    return row, tf.ensure_shape(noisy, []) + busy(row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(augment)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, noisy in dataset:
        ledger.train(epoch, row, noisy)
ledger.finish(counts=ledger.counts(), is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS)
