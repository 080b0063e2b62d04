"""The pipeline itself counts in a table how often each row was visited."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "mutable tables",
    "tempting": "repeated-work",
    "wrong": ["rows.map(count_visit)", "rows.map(count_visit).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6

visits = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=0)


def count_visit(row):
    seen = visits.lookup(row) + 1 + busy(row)
    with tf.control_dependencies([visits.insert(row, seen)]):
        return row, tf.identity(seen)


rows = tf.data.Dataset.range(ROWS)
train = rows.map(count_visit).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, seen in train:
        ledger.train(epoch, row, seen)
counts = visits.lookup(tf.range(ROWS, dtype=tf.int64)).numpy()
ledger.finish(elements=ledger.elements(), order=ledger.order(), visits=sorted(counts.tolist()))
