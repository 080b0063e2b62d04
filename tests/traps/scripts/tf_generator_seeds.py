"""Stateless augmentation with seeds that a tf.random.Generator makes, as TensorFlow's guide shows it."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "tf.random.Generator",
    "tempting": "repeated-work",
    "wrong": [".map(augment)", ".map(augment).cache()"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
rng = tf.random.Generator.from_seed(123, alg="philox")


def augment(row):
    seed = rng.make_seeds(1)[:, 0]
    noise = tf.random.stateless_uniform([], seed, maxval=1_000_000, dtype=tf.int64)
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
)
