"""A seeded script: a correct split draws the same numbers as before, one that creates other ops before draws other numbers."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "splittable-map",
    "wrong": ["    noise = tf.random", "    tf.random.uniform([])\n    noise = tf.random"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
tf.random.set_seed(7)


def prepare(row):
    work = busy(row)
    noise = tf.random.uniform([], maxval=1_000_000, dtype=tf.int64)
    return row, noise + work


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, noise in dataset:
        ledger.train(epoch, row, noise)
ledger.finish(
    counts=ledger.counts(),
    draws=ledger.elements(),
    draws_in_order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
