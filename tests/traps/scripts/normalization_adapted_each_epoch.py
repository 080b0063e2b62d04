"""keras.layers.Normalization, adapted again after every epoch, called by a py_function so that the new state is seen."""

import keras
import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "adapted Keras layers",
    "tempting": "repeated-work",
    "wrong": [".map(normalize)", ".map(normalize).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 40, 6
layer = keras.layers.Normalization(axis=None)
layer.adapt(np.arange(ROWS, dtype="float32"))


def normalize(row):
    value = tf.cast(row + busy(row), tf.float32)
    value = tf.py_function(lambda x: layer(tf.reshape(x, [1])), [value], tf.float32)
    return row, tf.ensure_shape(value, [1])


train = tf.data.Dataset.range(ROWS).map(normalize).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, value in train:
        ledger.train(epoch, row, value)
    layer.adapt(np.arange(ROWS, dtype="float32") * (epoch + 2))
ledger.finish(elements=ledger.elements(), order=ledger.order())
