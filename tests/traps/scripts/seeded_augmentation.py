"""tf.random.set_seed makes the augmentation reproducible, as long as its calls run one after the other."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "seeded scripts",
    "tempting": "serial-map",
    "wrong": ["dataset.map(augment)", "dataset.map(augment, num_parallel_calls=4)"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
tf.random.set_seed(7)


def augment(row):
    noise = tf.random.uniform([], maxval=1_000_000, dtype=tf.int64)
    return row, noise + busy(noise + row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(augment)
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
