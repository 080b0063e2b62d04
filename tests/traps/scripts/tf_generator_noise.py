"""Noise from a seeded tf.random.Generator, whose state goes on from row to row and from epoch to epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "tf.random.Generator",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(add_noise)", "dataset.map(add_noise).cache()"],
    "may_change": {"draws": ["rerandomized"], "draws_in_order": ["rerandomized", "reordered"]},
}
ROWS, EPOCHS = 48, 6
generator = tf.random.Generator.from_seed(3)


def add_noise(row):
    noise = generator.uniform([], maxval=1_000_000, dtype=tf.int64)
    return row, noise + busy(row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(add_noise)
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
