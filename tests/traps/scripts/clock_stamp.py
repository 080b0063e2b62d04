"""Each row carries the time at which it was read; the loop weighs it by its age."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "clocks",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(stamp)", "dataset.map(stamp).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6


def stamp(row):
    return row + busy(row), tf.timestamp()


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(stamp)
dataset = dataset.batch(4)

ledger = Ledger()
newest, is_fresh = 0.0, []
for epoch in range(EPOCHS):
    stamps = []
    for row, seconds in dataset:
        ledger.train(epoch, row)
        stamps += seconds.numpy().tolist()
    is_fresh.append(min(stamps) > newest)
    newest = max(stamps)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_fresh=is_fresh)
