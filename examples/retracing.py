"""retracing: the training step is traced again in every step.

A Python number is part of a `tf.function`'s signature, so each new learning rate creates a new graph. Pass it in the marked
call as a tensor (`tf.constant(rate)`) or as a `tf.Variable`.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()

features = tf.random.normal((4096, 64))
dataset = tf.data.Dataset.from_tensor_slices(features).batch(32, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = tf.Variable(tf.random.normal((64, 64), stddev=0.1))


@tf.function
def train_step(batch, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) - batch))
    weights.assign_sub(rate * tape.gradient(loss, weights))
    return loss


for step, batch in enumerate(dataset):
    loss = train_step(batch, 0.01 / (1 + step))  # <- retracing
print(f"loss {loss:.4f}")
