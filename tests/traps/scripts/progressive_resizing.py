"""Progressive resizing: the size of the images grows with the epochs, in a function that builds the pipeline."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "conditionals that build different pipelines per epoch",
    "tempting": "repeated-work",
    "wrong": ["train = make_dataset(8 + 4 * epoch)", "train = make_dataset(8 if epoch == 0 else 12)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 40, 6


def make_dataset(size):
    def load(row):
        image = tf.cast(tf.range(32 * 32) % 7, tf.float32) + tf.cast(row + busy(row), tf.float32)
        image = tf.image.resize(tf.reshape(image, [32, 32, 1]), [size, size])
        return row, image

    dataset = tf.data.Dataset.range(ROWS)
    dataset = dataset.map(load)
    return dataset.batch(4)


ledger = Ledger()
for epoch in range(EPOCHS):
    train = make_dataset(8 + 4 * epoch)
    for row, image in train:
        ledger.train(epoch, row, tf.reduce_sum(image, axis=[1, 2, 3]))
ledger.finish(elements=ledger.elements(), order=ledger.order())
