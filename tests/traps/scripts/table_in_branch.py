"""Only rows marked as hard look into the table that the loop refills: the look-up stands in a branch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "mutable tables",
    "tempting": "repeated-work",
    "wrong": [".map(weigh)", ".map(weigh).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6

bonus = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=0)


def weigh(row):
    if row % 3 == 0:
        extra = bonus.lookup(row)
    else:
        extra = tf.constant(0, tf.int64)
    return row, extra + busy(row)


train = (
    tf.data.Dataset.range(ROWS)
    .map(weigh)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, extra in train:
        ledger.train(epoch, row, extra)
    hard = tf.range(0, ROWS, 3, dtype=tf.int64)
    bonus.insert(hard, hard + epoch)
ledger.finish(elements=ledger.elements(), order=ledger.order())
