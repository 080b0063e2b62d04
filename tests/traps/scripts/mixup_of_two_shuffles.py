"""Mixup: the same prepared rows come twice, each time shuffled by itself."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "datasets shared by two consumers",
    "tempting": "repeated-work",
    "wrong": [
        "tf.data.Dataset.zip((prepared.shuffle(ROWS, seed=1), prepared.shuffle(ROWS, seed=2)))",
        "tf.data.Dataset.zip((prepared.shuffle(ROWS, seed=1), prepared.shuffle(ROWS, seed=1)))",
    ],
    "may_change": {"pairs": ["rerandomized"], "order": ["reordered", "rerandomized"]},
}
ROWS, EPOCHS = 24, 6


def prepare(row):
    return row + busy(row)


prepared = tf.data.Dataset.range(ROWS).map(prepare)
train = tf.data.Dataset.zip((prepared.shuffle(ROWS, seed=1), prepared.shuffle(ROWS, seed=2)))
train = train.batch(4)

ledger = Ledger()
own = 0
for epoch in range(EPOCHS):
    for one, other in train:
        ledger.train(epoch, one, other)
        own += int(tf.reduce_sum(tf.cast(one == other, tf.int64)))
ledger.finish(
    pairs=ledger.elements(), order=ledger.order(), counts=ledger.counts(), is_mixed=own < ROWS * EPOCHS // 3
)
