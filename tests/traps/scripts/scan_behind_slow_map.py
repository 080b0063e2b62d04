"""A running sum over the rows in their order, behind a map whose calls take very different times."""

import time

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "head-of-line",
    "wrong": ["num_parallel_calls=8", "num_parallel_calls=8, deterministic=False"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 64, 6


def fetch(row):
    time.sleep(0.15 if row % 8 == 0 else 0.005)  # a remote store, now and then slow
    return row


def load(row):
    return tf.ensure_shape(tf.numpy_function(fetch, [row], tf.int64), [])


def add_up(total, row):
    return total + row, (row, total + row)


options = tf.data.Options()
options.threading.private_threadpool_size = 16
train = tf.data.Dataset.range(ROWS).map(load, num_parallel_calls=8)
train = train.scan(tf.constant(0, tf.int64), add_up)
train = train.batch(4).with_options(options)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, total in train:
        ledger.train(epoch, row, total)
ledger.finish(elements=ledger.elements(), order=ledger.order())
