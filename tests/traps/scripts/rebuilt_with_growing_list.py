"""Every epoch makes its dataset of the rows found so far; from the fourth epoch on, the loop finds more of them."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    dataset = dataset_of(found)\n",
        "dataset = dataset_of(found)\nfor epoch in range(EPOCHS):\n",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 8

found = list(range(ROWS))


def features(row):
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return row + tf.cast(parts[-1] > 1e30, tf.int64)


def dataset_of(rows):
    dataset = tf.data.Dataset.from_tensor_slices(tf.constant(rows, tf.int64))
    return dataset.map(features).batch(4)


def look_for_more(epoch):
    if epoch >= 4:
        found.append(ROWS + epoch)


ledger = Ledger()
for epoch in range(EPOCHS):
    dataset = dataset_of(found)
    for row in dataset:
        ledger.train(epoch, row)
    look_for_more(epoch)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
