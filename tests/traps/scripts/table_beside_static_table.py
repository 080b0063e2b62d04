"""A vocabulary that never changes and a table of weights that does, in one function."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "mutable tables",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(look_up)", "dataset.map(look_up).cache()"],
    "may_change": {"order": ["reordered"]},
}
WORDS = [f"word{number}" for number in range(40)]
EPOCHS = 6

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)
weights = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=1)


def look_up(word):
    number = vocabulary.lookup(word)
    return number + busy(number), weights.lookup(word)


dataset = tf.data.Dataset.from_tensor_slices(WORDS)
dataset = dataset.map(look_up)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for number, weight in dataset:
        ledger.train(epoch, number, weight)
    weights.insert(tf.constant(WORDS[: 4 * epoch + 4]), tf.fill([4 * epoch + 4], tf.constant(epoch + 2, tf.int64)))
ledger.finish(elements=ledger.elements(), order=ledger.order())
