"""The function of each epoch's dataset asks an object how hard the rows may be; the object counts how often it was asked."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    for row in make_dataset():\n",
        "dataset = make_dataset()\nfor epoch in range(EPOCHS):\n    for row in dataset:\n",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 8


class Curriculum:
    def __init__(self):
        self._asked = 0

    @property
    def hardness(self):
        self._asked += 1
        return 1 + max(0, self._asked - 4)


curriculum = Curriculum()


def features(row):
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return row * curriculum.hardness + tf.cast(parts[-1] > 1e30, tf.int64)


def make_dataset():
    return tf.data.Dataset.range(ROWS).map(features).batch(4)


ledger = Ledger()
for epoch in range(EPOCHS):
    for row in make_dataset():
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order())
