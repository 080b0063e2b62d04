"""retracing: the training step is traced again for nearly every batch, because each one has a shape of its own.

Series of different lengths are padded to the longest of their batch, and a `tf.function` keeps one graph per shape. With
`@tf.function(reduce_retracing=True)`, the function that the marked call starts is traced once more, for any length. Padding
to a few fixed lengths (`padded_shapes`) bounds the number of graphs too.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=4000)
args = parser.parse_args()


def series(number):
    return tf.ones((8 + number * 7919 % 4001, 16))


dataset = (
    tf.data.Dataset.range(8 * args.steps).map(series).padded_batch(8, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
)

weights = tf.Variable(tf.random.normal((16, 16), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) - batch))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in dataset:
    loss = train_step(batch)  # <- retracing
print(f"loss {loss:.4f}")
