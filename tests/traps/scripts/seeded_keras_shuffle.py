"""keras.utils.set_random_seed fixes the order of every epoch; a filter follows the shuffle."""

import keras
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "seeded scripts",
    "tempting": "repeated-work",
    "wrong": [
        ".shuffle(ROWS)\n    .map(prepare)\n    .filter(is_even)",
        ".map(prepare)\n    .filter(is_even)\n    .cache()\n    .shuffle(ROWS)",
    ],
    "may_change": {"order": ["reordered", "rerandomized"]},
}
ROWS, EPOCHS = 64, 6
keras.utils.set_random_seed(1)


def prepare(row):
    return row + busy(row)


def is_even(row):
    return row % 2 == 0


train = (
    tf.data.Dataset.range(ROWS)
    .shuffle(ROWS)
    .map(prepare)
    .filter(is_even)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), is_reshuffled=len(set(ledger.order())) > 1)
