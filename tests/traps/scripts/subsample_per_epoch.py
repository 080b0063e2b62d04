"""shuffle().take(): a new sample of the rows in every epoch. A cache behind it trains on one sample for ever."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "repeated-work",
    "wrong": [".map(prepare)", ".map(prepare)\n    .cache()"],
    "may_change": {"elements": ["rerandomized"], "order": ["reordered", "rerandomized"]},
}
ROWS, TAKEN, EPOCHS = 400, 48, 6


def prepare(row):
    return row + busy(row)


train = (
    tf.data.Dataset.range(ROWS)
    .shuffle(ROWS, seed=21)
    .take(TAKEN)
    .map(prepare)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_resampled=ledger.distinct() > 2 * TAKEN)
