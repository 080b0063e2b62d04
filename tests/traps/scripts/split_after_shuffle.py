"""One shuffle, then take for validation and skip for training: moved behind the split it mixes nothing any more."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "splits after a shuffle",
    "tempting": "repeated-work",
    "wrong": [
        "rows.shuffle(ROWS, seed=9, reshuffle_each_iteration=False)",
        "rows.shuffle(ROWS, seed=9)",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, HELD_OUT, EPOCHS = 64, 16, 6


def prepare(row):
    return row + busy(row)


rows = tf.data.Dataset.range(ROWS)
mixed = rows.shuffle(ROWS, seed=9, reshuffle_each_iteration=False)
validation = mixed.take(HELD_OUT).batch(4)
train = mixed.skip(HELD_OUT).map(prepare).batch(4)

held_out = sorted(int(row) for batch in validation for row in batch)
ledger = Ledger()
trained = set()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
        trained |= set(row.numpy().tolist())
ledger.finish(
    elements=ledger.elements(), order=ledger.order(), held_out=held_out, overlap=len(trained & set(held_out))
)
