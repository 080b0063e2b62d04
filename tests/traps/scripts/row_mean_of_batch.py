"""A map that subtracts the mean of its row: applied to a batch as it is, it subtracts the mean of all rows."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(center).batch(256)", "dataset.batch(256).map(center)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def center(row):
    return row - tf.reduce_mean(row)


numbers = tf.reshape(tf.range(ROWS * 4, dtype=tf.float32), [ROWS, 4])
dataset = tf.data.Dataset.from_tensor_slices(tf.math.floormod(numbers * numbers, 1000.0))
dataset = dataset.map(center).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order())
