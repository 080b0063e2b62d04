"""A map inside an interleave numbers the rows with a variable: outside and in parallel, rows would get other numbers."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "maps that leave a function",
    "tempting": "map-inside-interleave",
    "wrong": [
        "data.interleave(lambda start: rows_of(start).map(numbered), cycle_length=2)",
        "data.interleave(rows_of, cycle_length=2).map(numbered, num_parallel_calls=8, deterministic=False)",
    ],
    "may_change": {},
}
EPOCHS = 3
data = tf.data.Dataset.range(4)
count = tf.Variable(0, dtype=tf.int64)


def rows_of(start):
    return tf.data.Dataset.range(start * 100, start * 100 + 12)


def numbered(row):
    number = count.assign_add(1)
    return row * 10_000 + number + busy(row)


data = data.interleave(lambda start: rows_of(start).map(numbered), cycle_length=2).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in data:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), count=int(count))
