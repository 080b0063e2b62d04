"""A map inside an interleave uses the number of its file: outside of the interleave there is no such number."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "maps that leave a function",
    "tempting": "map-inside-interleave",
    "wrong": [
        "dataset.interleave(read, cycle_length=2)",
        "dataset.interleave(lambda number: tf.data.Dataset.range(ROWS), cycle_length=2)"
        ".map(lambda row: row * 100 + busy(row))",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, FILES, EPOCHS = 60, 4, 3


def read(number):
    def labelled(row):
        return row * 100 + number + busy(row)

    return tf.data.Dataset.range(ROWS).map(labelled)


dataset = tf.data.Dataset.range(FILES)
dataset = dataset.interleave(read, cycle_length=2)
dataset = dataset.batch(20)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
