"""The expert's version: finished batches are cached."""

import tensorflow as tf
import workload

EPOCHS = 6


def parse(lines):
    return tf.stack(tf.io.decode_csv(lines, [0.0] * 21), axis=1)


def scale(rows):
    return tf.math.tanh(rows[:, :20] / 3.0), rows[:, 20]


def dataset():
    lines = tf.data.TextLineDataset(workload.csv_files()).batch(128)
    return lines.map(parse, num_parallel_calls=tf.data.AUTOTUNE).map(scale).cache().prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
