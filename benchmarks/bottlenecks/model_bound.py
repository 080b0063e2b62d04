"""The training step takes far longer than producing a batch, so no change to the pipeline is worthwhile."""

import lab
import tensorflow as tf
from lab import tick, without


def make_image(index):
    if without("image"):
        return lab.constant(1024)
    return tf.sin(tf.cast(index, tf.float32) + tf.range(1024.0))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(make_image, num_parallel_calls=tf.data.AUTOTUNE)  # node: image
    if without("batch"):
        dataset = lab.without_batch(dataset, 64, lab.constant(64, 1024))
    else:
        dataset = dataset.batch(64, drop_remainder=True)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(1024, 8192)
lab.run(main)
