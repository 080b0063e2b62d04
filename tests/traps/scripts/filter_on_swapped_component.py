"""The map swaps image and label, so that the filter's first component is another one than the map's."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "filters on a key that a map rewrites under the same name",
    "tempting": "late-filter",
    "wrong": [".map(swap)\n    .filter(is_wanted)", ".filter(is_wanted)\n    .map(swap)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 60, 6


def swap(image, label):
    return label, image + busy(image)


def is_wanted(first, second):
    return first % 4 < 2


train = (
    tf.data.Dataset.from_tensor_slices((tf.range(ROWS, dtype=tf.int64), tf.range(ROWS, dtype=tf.int64) // 5))
    .map(swap)
    .filter(is_wanted)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for label, image in train:
        ledger.train(epoch, label, image)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
