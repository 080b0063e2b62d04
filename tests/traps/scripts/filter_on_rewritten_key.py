"""The map corrects the label under the same key that the filter reads."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "filters on a key that a map rewrites under the same name",
    "tempting": "late-filter",
    "wrong": ["dataset.map(correct).filter(is_wanted)", "dataset.filter(is_wanted).map(correct)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 60, 6


def correct(example):
    label = (example["label"] + 1) % 4 + busy(example["image"])
    return {"image": example["image"], "label": label}


def is_wanted(example):
    return example["label"] < 2


dataset = tf.data.Dataset.from_tensor_slices(
    {"image": tf.range(ROWS, dtype=tf.int64), "label": tf.range(ROWS, dtype=tf.int64) % 4}
)
dataset = dataset.map(correct).filter(is_wanted)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for batch in dataset:
        ledger.train(epoch, batch["image"], batch["label"])
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
