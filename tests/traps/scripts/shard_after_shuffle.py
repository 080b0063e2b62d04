"""Two workers shuffle with the same seed and keep every second row: this one trains on other rows in every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "late-shard",
    "wrong": [
        "dataset.shuffle(ROWS, seed=11).shard(WORKERS, 0).map(prepare)",
        "dataset.shard(WORKERS, 0).map(prepare).shuffle(ROWS, seed=11)",
    ],
    "may_change": {"elements": ["rerandomized"], "order": ["reordered", "rerandomized"]},
}
ROWS, WORKERS, EPOCHS = 96, 2, 6


def prepare(row):
    return row + busy(row)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.shuffle(ROWS, seed=11).shard(WORKERS, 0).map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in dataset:
        ledger.train(epoch, row)
is_resampled = ledger.distinct() > 0.8 * ROWS
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts(), is_resampled=is_resampled)
