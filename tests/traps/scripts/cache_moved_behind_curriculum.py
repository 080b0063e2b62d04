"""A cache before a costly map whose result follows a variable that the loop raises: moving the cache after it would freeze it."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "variables raised per epoch",
    "tempting": "repeated-work",
    "wrong": [".cache().map(scale)", ".map(scale).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS = 6
level = tf.Variable(1, dtype=tf.int64)


def scale(row):
    return row * level + busy(row)


train = tf.data.Dataset.range(40).cache().map(scale).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    level.assign_add(1)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
