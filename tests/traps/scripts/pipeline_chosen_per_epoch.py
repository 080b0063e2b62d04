"""Two epochs of plain rows, then augmented ones: a new pipeline is built before every epoch."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "conditionals that build different pipelines per epoch",
    "tempting": "repeated-work",
    "wrong": ["return dataset.batch(4)", "return dataset.cache(str(Path(__file__).parent / 'prepared')).batch(4)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6


def prepare(row):
    return row + busy(row)


def triple(row):
    return row * 3


def dataset_of(epoch):
    dataset = tf.data.Dataset.range(ROWS).map(prepare)
    if epoch >= 2:
        dataset = dataset.map(triple)
    return dataset.batch(4)


ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset_of(epoch):
        ledger.train(epoch, row)
left = sorted(path.name for path in Path(__file__).parent.glob("*.index"))
ledger.finish(elements=ledger.elements(), order=ledger.order(), left=left)
