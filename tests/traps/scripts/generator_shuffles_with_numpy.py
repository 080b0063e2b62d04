"""A generator that draws a new order of its rows from NumPy in every epoch, and yields a part of them."""

import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "generators that shuffle or grow",
    "tempting": "repeated-work",
    "wrong": ["output_signature=tf.TensorSpec([], tf.int64))", "output_signature=tf.TensorSpec([], tf.int64)).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS, TAKEN = 6, 40
rows = np.arange(200)
numbers = np.random.default_rng(3)


def examples():
    yield from numbers.permutation(rows)[:TAKEN]


def prepare(row):
    return row + busy(row)


dataset = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64))
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), distinct=ledger.distinct())
