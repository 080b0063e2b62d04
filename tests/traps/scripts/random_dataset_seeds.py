"""Seeds from Dataset.random, drawn anew in every epoch: the map that uses them is stateless itself."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "counters as seeds",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(augment)", "dataset.map(augment).cache()"],
    "may_change": {
        "order": ["reordered", "rerandomized"],
        "elements": ["rerandomized"],
    },
}
ROWS, EPOCHS = 48, 6


def augment(row, seed):
    noise = tf.random.stateless_uniform([], tf.stack([seed, 1]), maxval=1_000_000, dtype=tf.int64)
    return row, noise + busy(row)


seeds = tf.data.Dataset.random(seed=4, rerandomize_each_iteration=True)
dataset = tf.data.Dataset.zip((tf.data.Dataset.range(ROWS), seeds))
dataset = dataset.map(augment)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, noise in dataset:
        ledger.train(epoch, row, noise)
ledger.finish(
    counts=ledger.counts(),
    elements=ledger.elements(),
    order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
