"""scan over a stateful shuffle: the differences between neighbours depend on the order of each epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "repeated-work",
    "wrong": [".scan(tf.constant(0, tf.int64), difference)", ".scan(tf.constant(0, tf.int64), difference).cache()"],
    "may_change": {"elements": ["rerandomized"], "order": ["reordered", "rerandomized"]},
}
ROWS, EPOCHS = 48, 6


def difference(last, row):
    return row + busy(row), (row, row - last)


train = (
    tf.data.Dataset.range(ROWS)
    .shuffle(ROWS, seed=5)
    .scan(tf.constant(0, tf.int64), difference)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, step in train:
        ledger.train(epoch, row, step)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_reshuffled=ledger.all_epochs_differ())
