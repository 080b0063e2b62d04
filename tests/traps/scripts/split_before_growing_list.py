"""The first half of the function reads a Python list through py_function; the loop appends to the list after every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "functions that are split",
    "tempting": "splittable-map",
    "wrong": ["dataset.map(prepare)", "dataset.map(weigh).cache().map(with_noise)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
weights = [1]


def weigh(row):
    weight = tf.py_function(lambda: weights[-1], [], tf.int64)
    return row, row * tf.ensure_shape(weight, []) + busy(row)


def with_noise(row, weighed):
    return row, weighed, tf.random.uniform([], maxval=1_000_000, dtype=tf.int64)


def prepare(row):
    row, weighed = weigh(row)
    noise = tf.random.uniform([], maxval=1_000_000, dtype=tf.int64)
    return row, weighed, noise


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
noises = set()
for epoch in range(EPOCHS):
    for row, weighed, noise in dataset:
        ledger.train(epoch, row, weighed)
        noises.update(noise.numpy().tolist())
    weights.append(weights[-1] * 3 + epoch)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_fresh=len(noises) > 0.9 * ROWS * EPOCHS)
