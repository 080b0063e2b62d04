"""A cheap map that looks element-wise and is not: it divides a value by a sum over all that it is given."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "scalar-map",
    "wrong": ["dataset.map(scale).batch(512)", "dataset.batch(512).map(scale)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def scale(row):
    value = tf.cast(row % 100, tf.float32)
    return row, value / (tf.reduce_sum(value) + 1.0)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(scale).batch(512)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, value in dataset:
        ledger.train(epoch, row, value)
ledger.finish(elements=ledger.elements(), order=ledger.order())
