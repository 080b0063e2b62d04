"""window-datasets: overlapping windows of a time series are cut with `window`, which makes a dataset of each of them.

The marked call makes a dataset of every window, and `flat_map` puts its rows together again. A tensor that holds all rows can be
sliced instead.
"""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

WINDOW = 48
hours = np.arange(20_000, dtype=np.float32)
series = np.stack([np.sin(hours / 24), np.cos(hours / 24), np.sin(hours / 8760)], axis=1)

dataset = tf.data.Dataset.from_tensor_slices(series)
dataset = dataset.window(WINDOW, shift=1, drop_remainder=True)  # <- window-datasets
dataset = dataset.flat_map(lambda rows: rows.batch(WINDOW))
dataset = dataset.batch(128, drop_remainder=True)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((WINDOW * 3, 16), stddev=0.01))


@tf.function
def train_step(windows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(windows, (-1, WINDOW * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for windows in dataset:
        loss = train_step(windows)
print(f"loss {loss:.4f}")
