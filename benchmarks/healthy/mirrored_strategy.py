"""A distributed dataset; each replica's step is more work than producing its batch."""

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
rows = np.random.default_rng(0).random((8_192, 512), np.float32)
dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(1_024).repeat(40).batch(128, drop_remainder=True)
dataset = strategy.experimental_distribute_dataset(dataset.prefetch(tf.data.AUTOTUNE))
with strategy.scope():
    first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
    second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


def replica_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ first) @ second - batch))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


@tf.function
def train_step(batch):
    return strategy.reduce("MEAN", strategy.run(replica_step, (batch,)), axis=None)


for batch in dataset:
    train_step(batch)
