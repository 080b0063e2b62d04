"""One dataset feeds the training and, between epochs, a teacher that moves the table from which its rows are weighted."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "datasets shared by two consumers",
    "tempting": "repeated-work",
    "wrong": ["rows.map(weigh)", "rows.map(weigh).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 40, 5
weights = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, default_value=1)


def weigh(row):
    return row, weights.lookup(row) + busy(row)


rows = tf.data.Dataset.range(ROWS)
weighted = rows.map(weigh)
train = weighted.batch(4)
teacher = weighted.batch(20)

ledger = Ledger()
taught = []
for epoch in range(EPOCHS):
    for row, weight in train:
        ledger.train(epoch, row, weight)
    weights.insert(tf.range(ROWS, dtype=tf.int64), tf.fill([ROWS], tf.constant(epoch + 2, tf.int64)))
    taught.append(sum(int(tf.reduce_sum(weight)) for _, weight in teacher))
ledger.finish(elements=ledger.elements(), order=ledger.order(), taught=taught)
