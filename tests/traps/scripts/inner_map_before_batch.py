"""A map inside an interleave centres each row; a batch follows it there, whose rows have another mean."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "maps that leave a function",
    "tempting": "map-inside-interleave",
    "wrong": [
        "dataset.interleave(lambda number: rows_of(number).map(centre).batch(8), cycle_length=2)",
        "dataset.interleave(lambda number: rows_of(number).batch(8), cycle_length=2).map(centre)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, FILES, EPOCHS = 64, 4, 3


def rows_of(number):
    numbers = tf.reshape(tf.range(ROWS * 4, dtype=tf.int64), [ROWS, 4])
    return tf.data.Dataset.from_tensor_slices((numbers + number) ** 2 % 11)


def centre(row):
    return row * 4 - tf.reduce_sum(row) + busy(tf.reduce_sum(row))


dataset = tf.data.Dataset.range(FILES)
dataset = dataset.interleave(lambda number: rows_of(number).map(centre).batch(8), cycle_length=2)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), batches=ledger.counts())
