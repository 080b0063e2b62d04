"""A second map overwrites one key of the dictionary that the first one passed on; the filter reads that key."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "filters on a key that a map rewrites under the same name",
    "tempting": "late-filter",
    "wrong": [
        "rows = rows.map(clip)\nrows = rows.filter(is_short)",
        "rows = rows.filter(is_short)\nrows = rows.map(clip)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 60, 6


def read(row):
    return {"text": row, "length": row % 12}


def clip(example):
    example = dict(example)
    example["length"] = tf.minimum(example["length"], 5) + busy(example["text"])
    return example


def is_short(example):
    return example["length"] % 5 < 3


rows = tf.data.Dataset.range(ROWS)
rows = rows.map(read)
rows = rows.map(clip)
rows = rows.filter(is_short)
train = rows.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for batch in train:
        ledger.train(epoch, batch["text"], batch["length"])
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
