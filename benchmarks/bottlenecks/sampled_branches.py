"""`sample_from_datasets` over a cheap and a costly branch, drawn equally often."""

import lab
import tensorflow as tf
from lab import tick, without


def make_easy(index):
    if without("easy"):
        return lab.constant(64, 64)
    return tf.random.normal((64, 64)) + tf.cast(index, tf.float32)


def make_hard(index):
    if without("hard"):
        return lab.constant(64, 64)
    noise = tf.random.normal((64, 64)) + tf.cast(index, tf.float32)
    return tf.linalg.qr(tf.linalg.qr(noise).q + noise).q


def main():
    easy = tf.data.Dataset.range(10_000_000)
    easy = easy.map(make_easy)  # node: easy
    hard = tf.data.Dataset.range(10_000_000)
    hard = hard.map(make_hard)  # node: hard
    dataset = tf.data.Dataset.sample_from_datasets([easy, hard], weights=[0.5, 0.5], seed=1)
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 64, 64))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


train_step = lab.dense_step(64 * 64, 32)
lab.run(main)
