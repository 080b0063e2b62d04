"""The function of a `flat_map` adds seeded noise before it makes the dataset: in parallel, the rows would get other noise."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "costly-flat-map",
    "wrong": [
        "def pieces(row):\n    row = noisy(row)\n    return tf.data.Dataset.from_tensor_slices(row)",
        "def noisy_row(row):\n    return noisy(row)\n\n\n"
        "data = data.map(noisy_row, num_parallel_calls=8, deterministic=False)\n"
        "pieces = tf.data.Dataset.from_tensor_slices",
    ],
    "may_change": {"elements": ["rerandomized"], "order": ["reordered", "rerandomized"]},
}
EPOCHS = 3
tf.random.set_seed(5)
data = tf.data.Dataset.range(24)


def noisy(row):
    noise = tf.random.uniform([3], maxval=1000, dtype=tf.int64)
    return tf.stack([row, row + 1, row + 2]) * 10_000 + noise + busy(row)


def pieces(row):
    row = noisy(row)
    return tf.data.Dataset.from_tensor_slices(row)


data = data.flat_map(pieces).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in data:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
