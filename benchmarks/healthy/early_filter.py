"""The filter precedes the work, which is parallel, random, and takes less time than the training."""

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).random((8_192, 512), np.float32)
labels = np.arange(8_192) % 3


dataset = tf.data.Dataset.from_tensor_slices((rows, labels)).filter(lambda row, label: label != 0)
dataset = dataset.cache().shuffle(1_024).repeat(60)
dataset = dataset.batch(128, drop_remainder=True)
dataset = dataset.map(lambda rows, labels: (rows + tf.random.normal((128, 512), stddev=0.1), labels), tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ first) @ second - batch))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


for batch, _ in dataset:
    train_step(batch)
