"""slow-batch-copy: one thread copies large elements into the batch.

The images are in memory; copying 16 of them into a batch is the only work, and the options prevent tf.data from
doing it on several threads. The marked call needs `num_parallel_calls=tf.data.AUTOTUNE`.
"""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=120)
args = parser.parse_args()

images = np.random.default_rng(0).random((96, 512, 512, 3), np.float32)
options = tf.data.Options()
options.experimental_optimization.parallel_batch = False
dataset = tf.data.Dataset.from_tensor_slices(images)
dataset = dataset.with_options(options)
dataset = dataset.cache()
dataset = dataset.shuffle(32)
dataset = dataset.batch(16)  # <- slow-batch-copy
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 16), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::16, ::16], (-1, 32 * 32 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
