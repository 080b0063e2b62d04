"""The whole loop is inside a `tf.function`; the dataset is in memory and the matrix products are not small."""

import numpy as np
import tensorflow as tf

rows = np.random.default_rng(0).random((4_096, 512), np.float32)
dataset = tf.data.Dataset.from_tensor_slices(rows)
dataset = dataset.cache().shuffle(1_024).repeat(40).batch(128, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


@tf.function
def train(batches):
    for batch in batches:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ first) @ second - batch))
        gradients = tape.gradient(loss, (first, second))
        first.assign_sub(0.01 * gradients[0])
        second.assign_sub(0.01 * gradients[1])


train(dataset)
