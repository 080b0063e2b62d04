"""A generator that shuffles its list of rows in Python before every epoch and takes a part of it."""

import random

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "generators that shuffle or grow",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(prepare)", "dataset.map(prepare).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS, TAKEN = 6, 40
rows = list(range(200))
random.seed(3)


def examples():
    random.shuffle(rows)
    yield from rows[:TAKEN]


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
