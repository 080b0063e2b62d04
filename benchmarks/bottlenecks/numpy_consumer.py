"""A consumer in NumPy through `as_numpy_iterator`: no TensorFlow step, the file folder is read with a serial interleave."""

import lab
import numpy as np
import records
import tensorflow as tf
from lab import tick, without


def read_image(file):
    if without("images"):
        return tf.data.Dataset.from_tensors(lab.constant(64, 64, 3))
    dataset = tf.data.Dataset.from_tensors(file)
    return dataset.map(decode)  # node: images


def decode(file):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(file), channels=3), (64, 64))


def main():
    dataset = tf.data.Dataset.from_tensor_slices(FILES).repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(480)  # node: shuffle
    dataset = dataset.interleave(read_image, cycle_length=2)  # node: interleave
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8)  # node: batch

    weights = np.zeros(64 * 64 * 3, np.float32)
    for images in dataset.as_numpy_iterator():
        rows = images.reshape(8, -1) / 255.0
        weights -= 1e-4 * rows.T @ (rows @ weights - 1.0)
        if tick():
            break


FILES = records.jpeg_files()
lab.run(main)
