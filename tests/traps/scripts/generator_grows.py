"""Active learning: after every epoch the loop appends newly labelled rows to the list that the generator reads."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "generators that shuffle or grow",
    "tempting": "repeated-work",
    "wrong": [".map(prepare)", ".map(prepare).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS = 6
labelled = list(range(32))


def examples():
    yield from list(labelled)


def prepare(row):
    return row + busy(row)


train = tf.data.Dataset.from_generator(examples, output_signature=tf.TensorSpec([], tf.int64)).map(prepare).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    labelled += range(len(labelled), len(labelled) + 8)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
