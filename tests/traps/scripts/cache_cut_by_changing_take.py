"""A take ends every epoch before the cache is complete; what stands between them passes other rows in every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "cache-cut-short",
    "wrong": [".cache()\n    .filter(is_wanted)\n    .take(TAKEN)", ".filter(is_wanted)\n    .take(TAKEN)\n    .cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, TAKEN, EPOCHS = 200, 16, 6
remainder = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)


def prepare(row):
    return row + busy(row)


def is_wanted(row):
    return row % 3 == remainder.lookup(tf.constant("remainder"))


train = (
    tf.data.Dataset.range(ROWS)
    .map(prepare)
    .cache()
    .filter(is_wanted)
    .take(TAKEN)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    remainder.insert(tf.constant("remainder"), tf.constant((epoch + 1) % 3, tf.int64))
ledger.finish(elements=ledger.elements(), order=ledger.order())
