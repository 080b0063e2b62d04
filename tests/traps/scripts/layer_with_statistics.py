"""A preprocessing layer normalises by statistics that the loop updates from what it has trained on."""

import keras
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "adapted Keras layers",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(prepare)", "dataset.map(prepare).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6


class RunningScale(keras.layers.Layer):
    def build(self, input_shape):
        self.scale = self.add_weight(name="scale", shape=(), initializer="ones", trainable=False)

    def call(self, inputs):
        return inputs / self.scale


layer = RunningScale()
layer(tf.zeros([1]))


def prepare(row):
    value = tf.cast(row + busy(row), tf.float32)
    return row, layer(tf.reshape(value, [1]))


dataset = tf.data.Dataset.range(ROWS)
dataset = dataset.map(prepare)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, value in dataset:
        ledger.train(epoch, row, value)
    layer.scale.assign(layer.scale * 2.0)
ledger.finish(elements=ledger.elements(), order=ledger.order())
