"""The rows are prepared, shuffled once, and split: the shuffle stands between the costly map and the split."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "repeated-work",
    "wrong": [
        "prepared.shuffle(ROWS, seed=2, reshuffle_each_iteration=False)",
        "prepared.cache().shuffle(ROWS, seed=2)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, HELD_OUT, EPOCHS = 60, 12, 6


def prepare(row):
    return row + busy(row)


prepared = tf.data.Dataset.range(ROWS).map(prepare)
mixed = prepared.shuffle(ROWS, seed=2, reshuffle_each_iteration=False)
train = mixed.skip(HELD_OUT).batch(4)
validation = mixed.take(HELD_OUT).batch(4)

ledger = Ledger()
trained = set()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
        trained |= set(row.numpy().tolist())
held_out = sorted(int(row) for batch in validation for row in batch)
ledger.finish(
    elements=ledger.elements(),
    order=ledger.order(),
    held_out=held_out,
    overlap=len(trained & set(held_out)),
)
