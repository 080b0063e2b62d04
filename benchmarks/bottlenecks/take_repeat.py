"""Epochs written as `take` and `repeat` in the pipeline and as a loop around it: the photographs are decoded every time."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def load(file):
    if without("load"):
        return lab.constant(64, 64, 3)
    image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(file), channels=3), (64, 64))
    return tf.image.random_flip_left_right(image)


def main():
    dataset = tf.data.Dataset.from_tensor_slices(FILES)
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(480)  # node: shuffle
    dataset = dataset.map(load)  # node: load
    dataset = dataset.take(320).repeat(2)
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8)  # node: batch

    is_over = False
    while not is_over:
        for images in dataset.take(60):
            train_step(images)
            is_over = tick()
            if is_over:
                break


FILES = records.jpeg_files()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
