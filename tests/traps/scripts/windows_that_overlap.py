"""Windows of rows that overlap by half, taken apart and put together: a plain batch would hold each row once."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "windows",
    "tempting": "window-datasets",
    "wrong": [
        "dataset.window(SIZE, shift=SIZE // 2).flat_map(lambda rows: rows.batch(SIZE))",
        "dataset.batch(SIZE)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, SIZE, EPOCHS = 6_000, 10, 3

dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.window(SIZE, shift=SIZE // 2).flat_map(lambda rows: rows.batch(SIZE))

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
