"""vectorizable-map: a function of many small ops is called once per element, although its ops can process a batch.

The marked map computes and normalises 32 numbers at a time. After the batch, one call processes 512 rows:
`.batch(512).map(lambda rows: tf.vectorized_map(waves, rows, fallback_to_while_loop=False))`.
"""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4000)
args = parser.parse_args()

FREQUENCIES = np.linspace(0.001, 0.1, 32, dtype=np.float32)


def waves(position):
    row = tf.sin(tf.cast(position % 10_000, tf.float32) * FREQUENCIES)
    row -= tf.reduce_mean(row)
    row /= tf.sqrt(tf.reduce_mean(tf.square(row))) + 1e-3
    return tf.clip_by_value(row, -2.0, 2.0)


dataset = tf.data.Dataset.range(512 * args.steps)
dataset = dataset.map(waves, num_parallel_calls=tf.data.AUTOTUNE)  # <- vectorizable-map
dataset = dataset.batch(512)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32, 16), stddev=0.1))


@tf.function
def train_step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(rows @ weights - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for rows in dataset:
    loss = train_step(rows)
print(f"loss {loss:.4f}")
