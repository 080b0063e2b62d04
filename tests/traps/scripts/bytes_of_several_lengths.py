"""A map that adds up the bytes of a record: decoded as a batch, records must be equally long, and the last ones are longer."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(total).batch(256)", "dataset.batch(256).map(total_of_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def total(record):
    values = tf.cast(tf.io.decode_raw(record, tf.uint8), tf.int64)
    return tf.reduce_sum(values) - tf.reduce_max(values)


def total_of_batch(records):
    values = tf.cast(tf.io.decode_raw(records, tf.uint8, fixed_length=8), tf.int64)
    return tf.reduce_sum(values, 1) - tf.reduce_max(values, 1)


records = [bytes([number % 251] * (8 if number < 9_000 else 9)) for number in range(ROWS)]
dataset = tf.data.Dataset.from_tensor_slices(records)
dataset = dataset.map(total).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
