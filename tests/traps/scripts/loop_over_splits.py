"""A loop makes the datasets of three splits; the last one draws its rows from a table that changes."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "one text that makes several datasets",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(prepare)", "dataset.map(prepare).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS = 6
offset = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=0)


def hard_rows(row):
    return row + offset.lookup(tf.constant("offset"))


def prepare(row):
    return row + busy(row)


splits = {
    "train": tf.data.Dataset.range(48),
    "validation": tf.data.Dataset.range(100, 104),
    "hard": tf.data.Dataset.range(200, 208).map(hard_rows),
}
for name, dataset in splits.items():
    dataset = dataset.map(prepare)
    splits[name] = dataset.batch(4)

ledger = Ledger()
hard = []
for epoch in range(EPOCHS):
    for row in splits["train"]:
        ledger.train(epoch, row)
    hard.append(sum(int(tf.reduce_sum(row)) for row in splits["hard"]))
    offset.insert(tf.constant("offset"), tf.constant(epoch + 1, tf.int64))
ledger.finish(elements=ledger.elements(), order=ledger.order(), hard=hard)
