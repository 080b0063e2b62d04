"""Only the op itself has a seed; the script sets no global one."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "seeded scripts",
    "tempting": "serial-map",
    "wrong": [".map(augment)", ".map(augment, num_parallel_calls=4)"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6


def augment(row):
    noise = tf.random.uniform([], maxval=1_000_000, dtype=tf.int64, seed=42)
    return row, noise + busy(noise + row)


train = tf.data.Dataset.range(ROWS).map(augment).batch(4).prefetch(2)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, noise in train:
        ledger.train(epoch, row, noise)
ledger.finish(
    counts=ledger.counts(),
    draws=ledger.elements(),
    draws_in_order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
