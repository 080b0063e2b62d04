"""A map inside a flat_map that uses the element of the flat_map: outside of it, that number is another one."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": [
        "rows_of(number).map(lambda row: center(row, number))).batch(256)",
        "rows_of(number)).batch(256).map(lambda rows: tf.vectorized_map(lambda row: center(row, 1), rows))",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, FILES, EPOCHS = 2_560, 4, 5


def rows_of(number):
    numbers = tf.reshape(tf.range(ROWS * 8, dtype=tf.int64), [ROWS, 8])
    return tf.data.Dataset.from_tensor_slices((numbers + number) ** 2 % 11)


def center(row, number):
    return (row * 8 - tf.reduce_sum(row)) * (number + 1)


dataset = tf.data.Dataset.range(FILES)
dataset = dataset.flat_map(lambda number: rows_of(number).map(lambda row: center(row, number))).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
