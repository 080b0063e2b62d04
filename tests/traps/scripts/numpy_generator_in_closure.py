"""A seeded NumPy generator in a closure, called for every row through numpy_function."""

import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "NumPy and Python random state",
    "tempting": "serial-map",
    "wrong": [".map(make_augmentation(7))", ".map(make_augmentation(7)).cache()"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6


def make_augmentation(seed):
    rng = np.random.default_rng(seed)

    def augment(row):
        angle = tf.numpy_function(lambda: rng.integers(1_000_000), [], tf.int64)
        return row + busy(row), tf.ensure_shape(angle, [])

    return augment


train = tf.data.Dataset.range(ROWS).map(make_augmentation(7)).batch(4).prefetch(1)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, angle in train:
        ledger.train(epoch, row, angle)
ledger.finish(
    counts=ledger.counts(),
    draws=ledger.elements(),
    draws_in_order=ledger.order(),
    is_fresh=ledger.distinct() > 0.9 * ROWS * EPOCHS,
)
