"""A vocabulary and a clock in one function: the table is constant, the time is not."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "clocks",
    "tempting": "repeated-work",
    "wrong": [".map(encode)", ".map(encode).cache()"],
    "may_change": {"order": ["reordered"]},
}
WORDS = [f"word{number}" for number in range(48)]
EPOCHS = 6

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)


def encode(word):
    number = vocabulary.lookup(word)
    return number + busy(number), tf.timestamp()


train = tf.data.Dataset.from_tensor_slices(WORDS).map(encode).batch(4)

ledger = Ledger()
newest, is_fresh = 0.0, []
for epoch in range(EPOCHS):
    stamps = []
    for number, seconds in train:
        ledger.train(epoch, number)
        stamps += seconds.numpy().tolist()
    is_fresh.append(min(stamps) > newest)
    newest = max(stamps)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_fresh=is_fresh)
