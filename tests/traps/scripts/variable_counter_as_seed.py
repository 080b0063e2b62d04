"""Stateless augmentation whose seed is a variable that the map itself counts up."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "counters as seeds",
    "tempting": "repeated-work",
    "wrong": [".map(augment)", ".map(augment).cache()"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
counter = tf.Variable(0, dtype=tf.int64, trainable=False)


def augment(row):
    seed = counter.assign_add(1)
    noise = tf.random.stateless_uniform([], [seed, 11], maxval=1_000_000, dtype=tf.int64)
    return row, noise + busy(row)


train = tf.data.Dataset.range(ROWS).map(augment).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, noise in train:
        ledger.train(epoch, row, noise)
ledger.finish(
    counts=ledger.counts(),
    draws=ledger.elements(),
    draws_in_order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
    counted=int(counter),
)
