"""A stream: each epoch of the generator goes on where the last one ended."""

import itertools

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "generators that shuffle or grow",
    "tempting": "repeated-work",
    "wrong": ["ds.map(prepare)", "ds.map(prepare).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS, PART = 6, 48
stream = itertools.count()


def next_part():
    yield from itertools.islice(stream, PART)


def prepare(row):
    return row + busy(row)


ds = tf.data.Dataset.from_generator(next_part, output_signature=tf.TensorSpec([], tf.int64))
ds = ds.map(prepare)
ds = ds.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in ds:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), distinct=ledger.distinct())
