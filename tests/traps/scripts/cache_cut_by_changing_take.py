"""A take ends every epoch before the cache is complete; what stands between the two changes from epoch to epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "cache-cut-short",
    "wrong": [".cache()\n    .map(shift)\n    .take(TAKEN)", ".map(shift)\n    .take(TAKEN)\n    .cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, TAKEN, EPOCHS = 200, 48, 6
offset = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)


def prepare(row):
    return row + busy(row)


def shift(row):
    return row, row + offset.lookup(tf.constant("offset"))


train = (
    tf.data.Dataset.range(ROWS)
    .map(prepare)
    .cache()
    .map(shift)
    .take(TAKEN)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, shifted in train:
        ledger.train(epoch, row, shifted)
    offset.insert(tf.constant("offset"), tf.constant(epoch + 1, tf.int64))
ledger.finish(elements=ledger.elements(), order=ledger.order())
