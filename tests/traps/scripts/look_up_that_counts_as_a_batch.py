"""One-hot codes from a Keras layer, which takes a scalar for a batch of one; the sum over it would be one over all rows."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(encode).batch(256)", "dataset.batch(256).map(encode)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5
codes_of = tf.keras.layers.StringLookup(vocabulary=[f"w{number}" for number in range(50)], output_mode="one_hot")


def encode(word):
    codes = codes_of(word)
    return tf.reduce_sum(codes, axis=0)


words = [f"w{number % 53}" for number in range(ROWS)]
dataset = tf.data.Dataset.from_tensor_slices(words)
dataset = dataset.map(encode).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order())
