"""Forecasting: windows of a series, made with `window` and `flat_map`, with noise added to each."""

import tensorflow as tf
import workload

EPOCHS = 1
SERIES = tf.math.sin(tf.range(36_000, dtype=tf.float32) / 40.0)
LENGTH = 48


def dataset():
    windows = tf.data.Dataset.from_tensor_slices(SERIES).window(LENGTH + 1, shift=1, drop_remainder=True)
    rows = windows.flat_map(lambda window: window.batch(LENGTH + 1))
    pairs = rows.map(lambda row: (row[:-1] + tf.random.normal([LENGTH], stddev=0.01), row[-1]))
    return pairs.shuffle(1_000).batch(64)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
