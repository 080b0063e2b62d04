"""The expert's version: the rows of a batch are parsed by one call."""

import tensorflow as tf
import workload

EPOCHS = 1


def parse(lines):
    *columns, labels = tf.io.decode_csv(lines, [0.0] * 21)
    features = tf.stack(columns, axis=1)
    return tf.clip_by_value(features, -3.0, 3.0) / 3.0, labels


def dataset():
    lines = tf.data.TextLineDataset(workload.csv_files()).batch(128)
    return lines.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
