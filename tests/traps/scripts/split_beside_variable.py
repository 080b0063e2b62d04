"""The costly part before the noise multiplies by a variable that the loop assigns before every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "splittable-map",
    "wrong": ["dataset.map(prepare)", "dataset.map(scaled).cache().map(with_noise)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
scale = tf.Variable(0, dtype=tf.int64, trainable=False)


def scaled(row):
    return row, row * scale + busy(row)


def with_noise(row, value):
    return row, value, tf.random.uniform([])


def prepare(row):
    row, value = scaled(row)
    return row, value, tf.random.uniform([])


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    scale.assign(epoch)
    for row, value, _ in dataset:
        ledger.train(epoch, row, value)
ledger.finish(elements=ledger.elements(), order=ledger.order())
