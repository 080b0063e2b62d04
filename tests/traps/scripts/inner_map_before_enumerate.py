"""Behind a map inside an interleave, the rows of each file are counted: outside, one count would run through all files."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "maps that leave a function",
    "tempting": "map-inside-interleave",
    "wrong": [
        "dataset.interleave(lambda number: rows_of(number).map(weigh).enumerate(), cycle_length=2)",
        "dataset.interleave(rows_of, cycle_length=2).map(weigh).enumerate()",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, FILES, EPOCHS = 60, 4, 3


def rows_of(number):
    return tf.data.Dataset.range(number * 1_000, number * 1_000 + ROWS)


def weigh(row):
    return row * 7 % 13 + busy(row)


dataset = tf.data.Dataset.range(FILES)
dataset = dataset.interleave(lambda number: rows_of(number).map(weigh).enumerate(), cycle_length=2)
dataset = dataset.batch(20)

ledger = Ledger()
for epoch in range(EPOCHS):
    for index, rows in dataset:
        ledger.train(epoch, rows, index)
ledger.finish(elements=ledger.elements(), order=ledger.order())
