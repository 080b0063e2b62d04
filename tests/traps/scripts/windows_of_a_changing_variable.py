"""The function that puts windows together scales them with a variable that the training raises in every epoch."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "windows",
    "tempting": "window-datasets",
    "wrong": [
        "dataset.window(SIZE).flat_map(scaled)",
        "dataset.batch(SIZE)",
    ],
    "may_change": {},
}
ROWS, SIZE, EPOCHS = 3_000, 10, 3
factor = tf.Variable(1, dtype=tf.int64)


def scaled(rows):
    return rows.batch(SIZE).map(lambda window: window * factor)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.window(SIZE).flat_map(scaled)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
    factor.assign_add(1)
ledger.finish(elements=ledger.elements(), order=ledger.order())
