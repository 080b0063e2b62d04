"""The expert's version: what the generator yields is kept."""

import numpy as np
import tensorflow as tf
import workload

EPOCHS = 5


def rows():
    generator = np.random.default_rng(7)
    for _ in range(6_000):
        walk = generator.standard_normal(2_000).cumsum()
        yield np.histogram(walk, bins=64)[0].astype(np.float32)


def dataset():
    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([64])).batch(64)
    return data.cache().prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
