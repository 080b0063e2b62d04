"""A Python generator that only yields rows: the training takes far longer than requesting them."""

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).random((64, 128, 512), np.float32)


def batches():
    for index in range(3_000):
        yield rows[index % 64]


dataset = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((128, 512), tf.float32))
dataset = dataset.prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


@tf.function
def train_step(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(inputs @ first) @ second - inputs))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


for inputs in dataset:
    train_step(inputs)
