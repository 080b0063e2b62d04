"""Hard examples count more: a dense table of losses that the loop updates after every epoch."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "mutable tables",
    "tempting": "repeated-work",
    "wrong": [".map(with_loss)", ".map(with_loss).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6

losses = tf.lookup.experimental.DenseHashTable(
    tf.int64, tf.float32, default_value=1.0, empty_key=-1, deleted_key=-2
)


def with_loss(key):
    return key, losses.lookup(key) + tf.cast(busy(key), tf.float32)


train = tf.data.Dataset.range(ROWS).map(with_loss).batch(4).prefetch(2)

ledger = Ledger()
for epoch in range(EPOCHS):
    for key, loss in train:
        ledger.train(epoch, key, loss)
        losses.insert(key, loss * 0.5)
ledger.finish(elements=ledger.elements(), order=ledger.order())
