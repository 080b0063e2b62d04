"""Embeddings of an image archive: one pass, decode and shrink."""

import tensorflow as tf
import workload

EPOCHS = 1


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [96, 96]) / 127.5 - 1.0


def dataset():
    return tf.data.Dataset.from_tensor_slices(workload.jpegs(800, 480)).map(load).batch(32)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
