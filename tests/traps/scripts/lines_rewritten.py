"""The loop rewrites the text file that the pipeline reads, after every epoch: pseudo-labels."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "files rewritten between epochs",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(parse)", "dataset.map(parse).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
LABELS = Path(__file__).parent / "labels.txt"


def write_labels(epoch):
    LABELS.write_text("".join(f"{row * (epoch + 1)}\n" for row in range(ROWS)))


def parse(line):
    label = tf.strings.to_number(line, tf.int64)
    return label + busy(label)


write_labels(0)
dataset = tf.data.TextLineDataset(str(LABELS))
dataset = dataset.map(parse)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for label in dataset:
        ledger.train(epoch, label)
    write_labels(epoch + 1)
ledger.finish(elements=ledger.elements(), order=ledger.order())
