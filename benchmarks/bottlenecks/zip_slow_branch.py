"""Two sources zipped: one branch is cheap, the other spends much time on random numbers."""

import lab
import tensorflow as tf
from lab import tick, without


def make_label(index):
    if without("labels"):
        return lab.constant(256)
    return tf.one_hot(index % 256, 256)


def make_image(index):
    if without("images"):
        return lab.constant(64, 64)
    noise = tf.random.normal((64, 64)) + tf.cast(index, tf.float32)
    return tf.linalg.qr(noise).q


def main():
    labels = tf.data.Dataset.range(10_000_000)
    labels = labels.map(make_label)  # node: labels
    images = tf.data.Dataset.range(10_000_000)
    images = images.map(make_image)  # node: images
    dataset = tf.data.Dataset.zip((images, labels))
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, (lab.constant(16, 64, 64), lab.constant(16, 256)))
    else:
        dataset = dataset.batch(16)  # node: batch

    for images, _ in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(64 * 64, 32)
lab.run(main)
