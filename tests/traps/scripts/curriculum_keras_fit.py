"""Keras' fit, with a callback that raises the noise level before every epoch."""

import keras
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "variables raised per epoch",
    "tempting": "repeated-work",
    "wrong": [".map(add_noise)", ".map(add_noise).cache()"],
    "may_change": {},
}
ROWS, EPOCHS = 48, 6
level = tf.Variable(0.0, trainable=False)


def add_noise(row):
    x = tf.cast(row + busy(row), tf.float32) / ROWS
    return tf.reshape(x + level, [1]), tf.reshape(x, [1])


class RaiseNoise(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        level.assign(0.1 * epoch)


class WatchInput(keras.metrics.Metric):
    """The mean of what the model was given: the difference between noisy input and target."""

    def __init__(self):
        super().__init__(name="noise")
        self.sum = self.add_weight(initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.sum.assign_add(tf.reduce_sum(y_pred - y_true))

    def result(self):
        return self.sum / ROWS


train = tf.data.Dataset.range(ROWS).map(add_noise).batch(4)
model = keras.Sequential([keras.Input([1]), keras.layers.Rescaling(1.0)])
model.compile(loss="mse", metrics=[WatchInput()])
history = model.fit(train, epochs=EPOCHS, verbose=0, callbacks=[RaiseNoise()])
Ledger().finish(noise=[round(float(value), 3) for value in history.history["noise"]])
