"""Rows weighted by a table of scores that the loop refills after every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "mutable tables",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(weigh)", "dataset.map(weigh).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6

scores = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=0)
keys = tf.range(ROWS, dtype=tf.int64)
scores.insert(keys, keys)


def weigh(key):
    return key, scores.lookup(key) + busy(key)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(weigh)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for key, score in dataset:
        ledger.train(epoch, key, score)
    scores.insert(keys, keys * (epoch + 2))  # the new scores of the examples
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
