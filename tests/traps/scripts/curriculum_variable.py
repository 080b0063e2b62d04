"""The difficulty is a variable that the loop raises before every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "variables raised per epoch",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(distort)", "dataset.map(distort).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6

difficulty = tf.Variable(0, dtype=tf.int64, trainable=False)


def distort(row):
    return row, row * difficulty + busy(row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(distort)
dataset = dataset.batch(4).prefetch(tf.data.AUTOTUNE)

ledger = Ledger()
for epoch in range(EPOCHS):
    difficulty.assign(epoch)
    for row, distorted in dataset:
        ledger.train(epoch, row, distorted)
ledger.finish(elements=ledger.elements(), order=ledger.order())
