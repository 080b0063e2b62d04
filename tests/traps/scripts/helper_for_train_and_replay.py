"""One helper prepares two datasets: that of constant rows could be cached, that of the growing replay list could not."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "one text that makes several datasets",
    "tempting": "repeated-work",
    "wrong": ["return dataset.map(decode)", "return dataset.map(decode).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
replayed = [1000]


def decode(row):
    return row + busy(row)


def prepare(dataset, batch_size):
    return dataset.map(decode).batch(batch_size)


def replay():
    yield from replayed


train = prepare(tf.data.Dataset.range(ROWS), 4)
again = prepare(tf.data.Dataset.from_generator(replay, output_signature=tf.TensorSpec([], tf.int64)), 2)

ledger = Ledger()
sums = []
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    sums.append(sum(int(tf.reduce_sum(row)) for row in again))
    replayed.append(1000 + epoch)
ledger.finish(elements=ledger.elements(), order=ledger.order(), replayed=sums)
