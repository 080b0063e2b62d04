"""A cheap map of rows of any length, which a padded batch fills up with zeros: behind the batch it would shift the zeros too."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "scalar-map",
    "wrong": ["dataset.map(shift).padded_batch(256)", "dataset.padded_batch(256).map(shift)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 20_480, 5


def row_of(number):
    return tf.range(number % 7 + 1) + number % 11


def shift(row):
    return row + 1


dataset = tf.data.Dataset.range(ROWS).map(row_of)
dataset = dataset.map(shift).padded_batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
