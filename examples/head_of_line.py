"""head-of-line: a few slow elements delay all finished elements after them, because the order must be preserved.

One request in twenty to the (imitated) server takes 25 times as long. Sixteen calls run at once, and when the slow one is
the next in order, fifteen finished ones wait for it. The marked map lacks `deterministic=False`.
"""

import argparse
import random
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=4)
args = parser.parse_args()


def ask_server(index):
    time.sleep(0.1 if random.random() < 0.05 else 0.004)
    return np.full((64, 64), index, np.float32)


def fetch(index):
    return tf.ensure_shape(tf.numpy_function(ask_server, [index], tf.float32), (64, 64))


options = tf.data.Options()
options.threading.private_threadpool_size = 32
dataset = tf.data.Dataset.range(2000)
dataset = dataset.map(fetch, num_parallel_calls=16)  # <- head-of-line
dataset = dataset.shuffle(64)
dataset = dataset.batch(8)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
dataset = dataset.with_options(options)

weights = tf.Variable(tf.random.normal((64 * 64, 32), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 64 * 64)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
