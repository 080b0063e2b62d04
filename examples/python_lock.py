"""python-lock: a map runs Python code, so its parallel calls wait for each other at the interpreter's lock.

`num_parallel_calls=tf.data.AUTOTUNE` is already used and does not help. Implement the function of the marked call with
TensorFlow ops, or run it once in advance.
"""

import argparse
import re

import numpy as np
import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

word = re.compile(r"[a-z_]+")


def count_letter_pairs(line):
    counts = np.zeros(256, np.float32)
    for name in word.findall(line.decode("utf-8", "ignore").lower()):
        for first, second in zip(name, name[1:]):
            counts[(31 * ord(first) + ord(second)) % 256] += 1.0
    return counts


def to_features(line):
    return tf.ensure_shape(tf.numpy_function(count_letter_pairs, [line], tf.float32), (256,))


files = sorted(str(file) for file in sample_data.text_folder().glob("*.txt"))
dataset = tf.data.TextLineDataset(files)
dataset = dataset.shuffle(1000)
dataset = dataset.map(to_features, num_parallel_calls=tf.data.AUTOTUNE)  # <- python-lock
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((256, 64), stddev=0.01))


@tf.function(reduce_retracing=True)
def train_step(features):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(features @ weights) - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for features in dataset:
        loss = train_step(features)
print(f"loss {loss:.4f}")
