"""odd-dimensions: mixed precision on layers of 1001 units, for which tensor cores cannot be used.

The marked call creates layers whose width is not a multiple of 8, as 1008 would be. This matters on GPUs with tensor cores;
on a CPU the rule reports nothing.
"""

import argparse

import keras
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=100)
args = parser.parse_args()

keras.mixed_precision.set_global_policy("mixed_bfloat16")
features = tf.random.normal((1024, 1001))
targets = tf.reduce_mean(features, axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, targets)).batch(256, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE)

layers = [keras.layers.Dense(1001, "relu") for _ in range(3)]  # <- odd-dimensions
model = keras.Sequential([keras.Input((1001,)), *layers, keras.layers.Dense(1, dtype="float32")])
model.compile("sgd", "mse")
model.fit(dataset, steps_per_epoch=args.steps, verbose=2)
