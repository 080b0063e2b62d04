"""A py_function numbers the rows as they come: run several at once, and rows get others' numbers."""

import itertools

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "serial-map",
    "wrong": [".map(number_row)", ".map(number_row).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
numbers = itertools.count()


def number_row(row):
    number = tf.py_function(lambda: next(numbers), [], tf.int64)
    return row, tf.ensure_shape(number, []) + busy(row)


train = tf.data.Dataset.range(ROWS).map(number_row).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, number in train:
        ledger.train(epoch, row, number)
ledger.finish(elements=ledger.elements(), order=ledger.order(), last=next(numbers))
