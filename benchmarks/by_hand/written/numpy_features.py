"""Features computed by NumPy inside `numpy_function`, with random dropout of samples."""

import numpy as np
import tensorflow as tf
import workload

EPOCHS = 2
SIGNALS = np.random.default_rng(0).standard_normal([72_000, 512]).astype(np.float32)


def features(signal):
    spectrum = np.abs(np.fft.rfft(signal))
    return np.log1p(spectrum).astype(np.float32)


def prepare(signal):
    kept = tf.where(tf.random.uniform([512]) < 0.9, signal, 0.0)
    result = tf.numpy_function(features, [kept], tf.float32)
    return tf.ensure_shape(result, [257])


def dataset():
    return tf.data.Dataset.from_tensor_slices(SIGNALS).map(prepare).batch(64)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
