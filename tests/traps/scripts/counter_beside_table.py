"""Beside a constant table the map counts in a variable how many rows were prepared; a budget is read off it."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "side effects beside constant tables",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(encode)", "dataset.map(encode).cache()"],
    "may_change": {"order": ["reordered"]},
}
WORDS = [f"word{number}" for number in range(48)]
EPOCHS = 6

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)
prepared = tf.Variable(0, dtype=tf.int64, trainable=False)


def encode(word):
    number = vocabulary.lookup(word)
    prepared.assign_add(1)
    return number + busy(number)


dataset = tf.data.Dataset.from_tensor_slices(WORDS)
dataset = dataset.map(encode)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for number in dataset:
        ledger.train(epoch, number)
ledger.finish(elements=ledger.elements(), order=ledger.order(), prepared=int(prepared))
