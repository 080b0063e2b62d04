"""From the third epoch on a switch, a variable, selects another augmentation in a tf.cond."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "conditionals that build different pipelines per epoch",
    "tempting": "repeated-work",
    "wrong": ["ds.map(augment)", "ds.map(augment).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
is_late = tf.Variable(False, trainable=False)


def augment(row):
    value = row + busy(row)
    return row, tf.cond(is_late, lambda: value * 3, lambda: value)


ds = tf.data.Dataset.range(ROWS)
ds = ds.map(augment)
ds = ds.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    is_late.assign(epoch >= 3)
    for row, value in ds:
        ledger.train(epoch, row, value)
ledger.finish(elements=ledger.elements(), order=ledger.order())
