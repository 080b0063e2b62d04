"""The offset before the noise is drawn by NumPy, so that the part without random ops differs between epochs, too."""

import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "splittable-map",
    "wrong": ["dataset.map(prepare)", "dataset.map(shift).cache().map(with_noise)"],
    "may_change": {},
}
ROWS, EPOCHS = 48, 6


def draw():
    return np.int64(np.random.randint(1_000_000))


def shift(row):
    offset = tf.numpy_function(draw, [], tf.int64)
    return row, tf.ensure_shape(offset, []) + busy(row)


def with_noise(row, shifted):
    return row, shifted, tf.random.uniform([])


def prepare(row):
    row, shifted = shift(row)
    return row, shifted, tf.random.uniform([])


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, shifted, _ in dataset:
        ledger.train(epoch, row, shifted)
ledger.finish(counts=ledger.counts(), is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS)
