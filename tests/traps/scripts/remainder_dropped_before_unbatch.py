"""The blocks drop their remainder before they are taken apart: with one batching less, those rows come back."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "remainders dropped before unbatch",
    "tempting": "unbatch-rebatch",
    "wrong": [
        ".batch(BLOCK, drop_remainder=True).map(prepare).unbatch().batch(2000)",
        ".map(prepare).batch(2000)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, BLOCK, EPOCHS = 40_050, 100, 4


def prepare(rows):
    return rows * 2


train = tf.data.Dataset.range(ROWS).batch(BLOCK, drop_remainder=True).map(prepare).unbatch().batch(2000)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
