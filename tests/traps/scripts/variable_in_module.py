"""Annealed noise: a module that the map calls keeps its temperature in a variable of its own."""

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "variables raised per epoch",
    "tempting": "repeated-work",
    "wrong": [".map(soften)", ".map(soften).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6


class Softening(tf.Module):
    def __init__(self):
        self.temperature = tf.Variable(8.0, trainable=False)

    @tf.function
    def __call__(self, row):
        target = tf.cast(row + busy(row), tf.float32)
        return target, tf.math.tanh(target / self.temperature)

    def cool(self):
        self.temperature.assign(self.temperature * 0.5)


soften = Softening()
train = tf.data.Dataset.range(ROWS).map(soften).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for target, soft in train:
        ledger.train(epoch, target, soft)
    soften.cool()
ledger.finish(elements=ledger.elements(), order=ledger.order())
