"""Hard negatives: after every epoch the loop replaces rows of the list that the generator reads; its length stays the same."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "generators that shuffle or grow",
    "tempting": "repeated-work",
    "wrong": ["output_signature=tf.TensorSpec([], tf.int64))", "output_signature=tf.TensorSpec([], tf.int64)).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS, ROWS = 6, 40
mined = list(range(ROWS))


def examples():
    yield from mined


def prepare(row):
    return row + busy(row)


dataset = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64))
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset:
        ledger.train(epoch, row)
    for place in range(epoch, ROWS, 5):
        mined[place] += ROWS
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
