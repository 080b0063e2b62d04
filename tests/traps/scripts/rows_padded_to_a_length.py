"""A map before a batch that pads every row to a fixed length: behind the batch, its sums would be those of shorter rows."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": [
        "dataset.map(center).padded_batch(256, [12])",
        "dataset.padded_batch(256, [12]).map(lambda rows: tf.vectorized_map(center, rows, fallback_to_while_loop=False))",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def center(row):
    return row * 8 - tf.reduce_sum(row)


numbers = tf.reshape(tf.range(ROWS * 8, dtype=tf.int64), [ROWS, 8])
dataset = tf.data.Dataset.from_tensor_slices(numbers * numbers % 11)
dataset = dataset.map(center).padded_batch(256, [12])

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
