"""Each epoch lets longer examples pass: the limit of the filter is a variable."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "variables raised per epoch",
    "tempting": "repeated-work",
    "wrong": ["dataset.filter(is_short_enough)", "dataset.filter(is_short_enough).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 60, 6

longest = tf.Variable(16, dtype=tf.int64, trainable=False)


def is_short_enough(row):
    return row + busy(row) < longest


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.filter(is_short_enough)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset:
        ledger.train(epoch, row)
    longest.assign_add(8)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
