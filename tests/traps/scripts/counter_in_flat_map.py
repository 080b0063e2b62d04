"""The function of a `flat_map` numbers its rows with a variable: run ahead and in parallel, rows would get other numbers."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "costly-flat-map",
    "wrong": [
        "def pieces(row):\n    row = numbered(row)\n    return tf.data.Dataset.from_tensor_slices(row)",
        "data = data.map(numbered, num_parallel_calls=8, deterministic=False)\n"
        "pieces = tf.data.Dataset.from_tensor_slices",
    ],
    "may_change": {},
}
EPOCHS = 3
data = tf.data.Dataset.range(24)
count = tf.Variable(0, dtype=tf.int64)


def numbered(row):
    number = count.assign_add(1)
    return tf.stack([row, row + 1, row + 2]) * 10_000 + number + busy(row)


def pieces(row):
    row = numbered(row)
    return tf.data.Dataset.from_tensor_slices(row)


data = data.flat_map(pieces).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in data:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), count=int(count))
