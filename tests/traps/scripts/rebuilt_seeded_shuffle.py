"""Each epoch makes its dataset anew, so that the seeded shuffle begins with the same order every time."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    for row in make_dataset():\n",
        "dataset = make_dataset()\nfor epoch in range(EPOCHS):\n    for row in dataset:\n",
    ],
    "may_change": {"order": ["reordered", "rerandomized"], "is_one_order": ["reordered", "rerandomized"]},
}
ROWS, EPOCHS = 48, 8


def features(row):
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return row + tf.cast(parts[-1] > 1e30, tf.int64)


def make_dataset():
    return tf.data.Dataset.range(ROWS).shuffle(ROWS, seed=7).map(features).batch(4)


ledger = Ledger()
for epoch in range(EPOCHS):
    for row in make_dataset():
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_one_order=len(set(ledger.order())) == 1)
