"""The helper with the costly work draws a number inside; only the last line looks random."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "splittable-map",
    "wrong": ["dataset.map(prepare)", "dataset.map(load).cache().map(with_noise)"],
    "may_change": {},
}
ROWS, EPOCHS = 48, 6


def load(row):
    position = tf.random.uniform([], maxval=1_000_000, dtype=tf.int64)
    return row, position + busy(row)


def with_noise(row, position):
    return row, position, tf.random.uniform([])


def prepare(row):
    row, position = load(row)
    noise = tf.random.uniform([])
    return row, position, noise


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, position, _ in dataset:
        ledger.train(epoch, row, position)
ledger.finish(counts=ledger.counts(), is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS)
