"""NumPy does the training; batches come from memory through `as_numpy_iterator`."""

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).random((4_096, 1024), np.float32)
weights = np.random.default_rng(1).random((1024, 1024), np.float32) / 1024
dataset = tf.data.Dataset.from_tensor_slices(rows).repeat(40).batch(256, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
for batch in dataset.as_numpy_iterator():
    hidden = np.maximum(batch @ weights, 0)
    weights -= 0.001 * (batch.T @ (hidden @ weights.T - batch)) / len(batch)
