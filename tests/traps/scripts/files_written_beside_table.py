"""Beside a constant vocabulary the map leaves a file for each row, which the loop collects after every epoch."""

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
FOLDER = Path(__file__).parent / "audit"
FOLDER.mkdir(exist_ok=True)

vocabulary = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64)), default_value=-1
)


def encode(word):
    number = vocabulary.lookup(word)
    tf.io.write_file(tf.strings.join([str(FOLDER), word], "/"), word)
    return number + busy(number)


dataset = tf.data.Dataset.from_tensor_slices(WORDS)
dataset = dataset.map(encode)
dataset = dataset.batch(4)

ledger = Ledger()
collected = []
for epoch in range(EPOCHS):
    for number in dataset:
        ledger.train(epoch, number)
    files = list(FOLDER.iterdir())
    collected.append(len(files))
    for file in files:
        file.unlink()
ledger.finish(elements=ledger.elements(), order=ledger.order(), collected=collected)
