"""Two sources zipped, images from memory and targets made on the fly; neither is much work beside the training."""

import numpy as np
import tensorflow as tf

images = np.random.default_rng(0).integers(0, 255, (512, 32, 32, 3), np.uint8)
inputs = tf.data.Dataset.from_tensor_slices(images).repeat()
targets = tf.data.Dataset.range(10_000_000).map(lambda i: tf.cast(i % 10, tf.float32))
dataset = tf.data.Dataset.zip(inputs, targets).batch(64, drop_remainder=True)
dataset = dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y), num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
kernel = tf.Variable(tf.random.normal((5, 5, 3, 64), stddev=0.05))
second = tf.Variable(tf.random.normal((5, 5, 64, 64), stddev=0.05))


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        loss = tf.reduce_mean(tf.square(tf.reduce_mean(tf.nn.conv2d(hidden, second, 2, "SAME"), (1, 2, 3)) - y))
    for variable, gradient in zip((kernel, second), tape.gradient(loss, (kernel, second)), strict=True):
        variable.assign_sub(0.001 * gradient)
    return loss


for step, (x, y) in enumerate(dataset):
    train_step(x, y)
    if step == 600:
        break
