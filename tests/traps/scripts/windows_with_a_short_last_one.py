"""The mean of each window of rows, of which the last one is shorter: windows padded to equal length have another mean."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "windows",
    "tempting": "vectorizable-map",
    "wrong": [
        "dataset.map(mean).batch(BATCH)",
        "dataset.padded_batch(BATCH).map(lambda windows: tf.vectorized_map(tf.function(mean), windows))",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, SIZE, BATCH, EPOCHS = 6_005, 10, 16, 3


def mean(window):
    return tf.reduce_sum(window) // tf.reduce_sum(tf.ones_like(window))


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.window(SIZE).flat_map(lambda rows: rows.batch(SIZE))
dataset = dataset.map(mean).batch(BATCH)

ledger = Ledger()
for epoch in range(EPOCHS):
    for means in dataset:
        ledger.train(epoch, means)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
