"""random.seed(1) makes the augmentation reproducible, as long as rows are prepared one after the other."""

import random

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "NumPy and Python random state",
    "tempting": "serial-map",
    "wrong": ["dataset.map(augment)", "dataset.map(augment).cache()"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
random.seed(1)


def augment(row):
    shift = tf.py_function(lambda: random.randrange(1_000_000), [], tf.int64)
    return row, tf.ensure_shape(shift, []) + busy(row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(augment)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, shift in dataset:
        ledger.train(epoch, row, shift)
ledger.finish(
    counts=ledger.counts(),
    draws=ledger.elements(),
    draws_in_order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
