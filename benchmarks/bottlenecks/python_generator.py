"""Elements are produced by Python, one after the other, before two transformations in TensorFlow."""

import lab
import numpy as np
import tensorflow as tf
from lab import tick, without


def simulate():
    random = np.random.default_rng(0)
    while True:
        walk = [0.0]
        for step in random.normal(size=1023).tolist():
            walk.append(0.9 * walk[-1] + step)
        yield np.asarray(walk, np.float32)


def normalize(walk):
    if without("normalize"):
        return lab.constant(1024)
    return (walk - tf.reduce_mean(walk)) / (tf.math.reduce_std(walk) + 1e-6)


def main():
    if without("simulate"):
        dataset = tf.data.Dataset.from_tensors(lab.constant(1024)).repeat()
    else:
        dataset = tf.data.Dataset.from_generator(  # node: simulate
            simulate, output_signature=tf.TensorSpec((1024,), tf.float32)
        )
    dataset = dataset.map(normalize, num_parallel_calls=tf.data.AUTOTUNE)  # node: normalize
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 1024))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for walks in dataset:
        train_step(walks)
        if tick():
            break


train_step = lab.dense_step(1024, 128)
lab.run(main)
