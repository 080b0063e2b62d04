"""The first three words of each text: of a batch of texts, the same slice takes all words of the first three texts."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(encode).padded_batch(256)", "dataset.batch(256).map(encode_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5
table = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer([f"w{number}" for number in range(100)], tf.range(100, dtype=tf.int64)), -1
)


def encode(text):
    return table.lookup(tf.strings.split(text)[:3])


def encode_batch(texts):
    return encode(texts).to_tensor()


texts = [" ".join(f"w{number % 7 + place}" for place in range(number % 9 + 1)) for number in range(ROWS)]
dataset = tf.data.Dataset.from_tensor_slices(texts)
dataset = dataset.map(encode).padded_batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
