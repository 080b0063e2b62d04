"""A Python flag, set by the loop, decides inside a py_function which of two augmentations runs."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "conditionals that build different pipelines per epoch",
    "tempting": "repeated-work",
    "wrong": [".map(augment)", ".map(augment).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 40, 6
settings = {"is_late": False}


def choose(row):
    return row * 3 if settings["is_late"] else row


def augment(row):
    value = tf.py_function(choose, [row + busy(row)], tf.int64)
    return row, tf.ensure_shape(value, [])


train = tf.data.Dataset.range(ROWS).map(augment).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    settings["is_late"] = epoch >= 3
    for row, value in train:
        ledger.train(epoch, row, value)
ledger.finish(elements=ledger.elements(), order=ledger.order())
