"""Each block is normalised by its own mean, then taken apart and batched in another size."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "remainders dropped before unbatch",
    "tempting": "unbatch-rebatch",
    "wrong": ["dataset.batch(BLOCK).map(centre).unbatch().batch(2000)", "dataset.batch(2000).map(centre)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, BLOCK, EPOCHS = 40_000, 80, 4


def centre(rows):
    values = tf.cast(rows * rows % 1013, tf.float32)
    return rows, values - tf.reduce_mean(values)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.batch(BLOCK).map(centre).unbatch().batch(2000)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, value in dataset:
        ledger.train(epoch, row, value)
ledger.finish(elements=ledger.elements(), order=ledger.order(), batches=ledger.counts())
