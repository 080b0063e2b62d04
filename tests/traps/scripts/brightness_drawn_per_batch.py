"""An augmentation without a seed draws a number per row; applied to a batch as it is, it draws one for all rows."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(brighten).batch(256)", "dataset.batch(256).map(brighten)"],
    "may_change": {},
}
ROWS, EPOCHS = 10_240, 5


def brighten(row):
    pixels = tf.zeros(tf.concat([tf.shape(row), [4, 4, 1]], 0))
    bright = tf.image.random_brightness(pixels, 0.9)
    return row, tf.cast(bright[..., 0, 0, 0] * 1e6, tf.int64)


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(brighten).batch(256)

ledger = Ledger()
drawn = set()
for epoch in range(EPOCHS):
    for row, number in dataset:
        ledger.train(epoch, row)
        drawn.update(number.numpy().tolist())
ledger.finish(counts=ledger.counts(), has_number_per_row=len(drawn) > 0.5 * ROWS * EPOCHS)
