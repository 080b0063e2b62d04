"""A look-up, then a row-wise step with factors of another line: passed on with the batch, each row would get a single factor."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(weigh).batch(256)", "dataset.batch(256).map(weigh_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5
table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([f"w{number}" for number in range(100)], list(range(100))), -1
)


def weigh(words):
    factors = tf.range(256)
    codes = table.lookup(words)
    return tf.reduce_sum(codes) * factors[:4] - tf.reduce_max(codes)


def weigh_batch(words):
    factors = tf.range(256)
    codes = table.lookup(words)

    def weigh_rows(row):
        codes, factor = row
        return tf.reduce_sum(codes) * factor - tf.reduce_max(codes)

    return tf.vectorized_map(weigh_rows, (codes, factors[: tf.shape(words)[0]]), fallback_to_while_loop=False)


words = [[f"w{(number * place) % 113}" for place in range(1, 6)] for number in range(ROWS)]
dataset = tf.data.Dataset.from_tensor_slices(words)
dataset = dataset.map(weigh).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
