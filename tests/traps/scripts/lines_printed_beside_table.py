"""Beside a constant table the map prints each row into a log, one line a visit."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "side effects beside constant tables",
    "tempting": "repeated-work",
    "wrong": [".map(encode)", ".map(encode).cache()"],
    "may_change": {"order": ["reordered"]},
}
WORDS = [f"word{number}" for number in range(48)]
EPOCHS = 6
LOG = Path(__file__).parent / "visits.log"

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)


def encode(word):
    number = vocabulary.lookup(word)
    tf.print(word, output_stream=f"file://{LOG}")
    return number + busy(number)


train = tf.data.Dataset.from_tensor_slices(WORDS).map(encode).batch(4)

LOG.write_text("")
ledger = Ledger()
for epoch in range(EPOCHS):
    for number in train:
        ledger.train(epoch, number)
lines = LOG.read_text().splitlines()
ledger.finish(elements=ledger.elements(), order=ledger.order(), lines=len(lines), words=len(set(lines)))
