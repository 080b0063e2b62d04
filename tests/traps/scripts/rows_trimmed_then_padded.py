"""A map whose results have different lengths, which a padded batch fills up: of a batch it keeps one flat vector."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(trim).padded_batch(256)", "dataset.batch(256).map(trim)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def trim(row):
    kept = tf.boolean_mask(row, row > 2)
    return kept * 10 + tf.cast(tf.size(kept), tf.int64)


numbers = tf.reshape(tf.range(ROWS * 8, dtype=tf.int64), [ROWS, 8])
dataset = tf.data.Dataset.from_tensor_slices(numbers * numbers % 11)
dataset = dataset.map(trim).padded_batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
