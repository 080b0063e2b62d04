"""scalar-map: a cheap function is called once for every scalar; the call costs far more than its work.

The marked map multiplies one number at a time. After the batch, the same function runs once for a thousand numbers:
`.batch(1024).map(scale)`.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
args = parser.parse_args()


def scale(index):
    return tf.cast(index % 1000, tf.float32) / 500.0 - 1.0


dataset = tf.data.Dataset.range(1024 * args.steps)
dataset = dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE)  # <- scalar-map
dataset = dataset.batch(1024)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((1, 64), stddev=0.1))


@tf.function
def train_step(numbers):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.sin(numbers[:, tf.newaxis] @ weights) - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for numbers in dataset:
    loss = train_step(numbers)
print(f"loss {loss:.4f}")
