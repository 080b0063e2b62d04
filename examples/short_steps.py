"""short-steps: a small Keras model whose steps take less time than the Python between them.

Keras returns to Python after every batch to call its callbacks and to start the next step; with a model of this
size, that takes longer than the step itself. With `steps_per_execution=32` in the marked call, one call runs 32 steps.
"""

import argparse

import keras
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6000)
args = parser.parse_args()

features = tf.random.normal((8192, 64))
targets = tf.reduce_sum(features[:, :8], axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, targets)).batch(32, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")  # <- short-steps
model.fit(dataset, steps_per_epoch=args.steps, verbose=2)
