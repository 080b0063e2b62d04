"""The expert's version: built once, so that the cache is filled once."""

import tensorflow as tf
import workload

EPOCHS = 5


def parse(lines):
    *columns, labels = tf.io.decode_csv(lines, [0.0] * 21)
    return tf.stack(columns, axis=1), labels


def dataset():
    lines = tf.data.TextLineDataset(workload.csv_files()).batch(128)
    return lines.map(parse, num_parallel_calls=tf.data.AUTOTUNE).cache().prefetch(1)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
