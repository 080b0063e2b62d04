"""The input pipeline is a function that the loop calls in every epoch, cache and all."""

import tensorflow as tf
import workload

EPOCHS = 5


def parse(line):
    *columns, label = tf.io.decode_csv(line, [0.0] * 21)
    return tf.stack(columns), label


def dataset():
    lines = tf.data.TextLineDataset(workload.csv_files())
    return lines.map(parse).batch(128).cache().prefetch(1)


if __name__ == "__main__":
    for _ in range(EPOCHS):
        for batch in dataset():
            workload.step(batch)
