"""Stateless augmentation seeded by a running counter: the second pass over the rows draws other numbers than the first."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "counters as seeds",
    "tempting": "repeated-work",
    "wrong": [
        "tf.data.Dataset.zip((rows.repeat(EPOCHS), tf.data.Dataset.counter())).map(augment)",
        "tf.data.Dataset.zip((rows, tf.data.Dataset.counter())).map(augment).cache().repeat(EPOCHS)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6


def augment(row, number):
    noise = tf.random.stateless_uniform([], [number, 7], maxval=1_000_000, dtype=tf.int64)
    return row, noise + busy(row)


rows = tf.data.Dataset.range(ROWS)
train = tf.data.Dataset.zip((rows.repeat(EPOCHS), tf.data.Dataset.counter())).map(augment)
train = train.batch(4)

ledger = Ledger()
for step, (row, noise) in enumerate(train):
    ledger.train(step * 4 // ROWS, row, noise)
ledger.finish(
    elements=ledger.elements(),
    order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
