"""The map writes a summary of each row that it prepares, next to a constant table."""

from pathlib import Path

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
LOGS = Path(__file__).parent / "logs"

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)
writer = tf.summary.create_file_writer(str(LOGS))


def encode(word):
    number = vocabulary.lookup(word)
    with writer.as_default(step=0):
        tf.summary.scalar("number", number)
    return number + busy(number)


dataset = tf.data.Dataset.from_tensor_slices(WORDS)
dataset = dataset.map(encode)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for number in dataset:
        ledger.train(epoch, number)
writer.close()
events = 0
for path in LOGS.iterdir():
    records = tf.data.TFRecordDataset(str(path))
    events += sum(1 for _ in records) - 1  # the first one only names the file's version
ledger.finish(elements=ledger.elements(), order=ledger.order(), events=events)
