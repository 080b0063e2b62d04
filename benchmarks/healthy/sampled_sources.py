"""Two sources mixed at random, both in memory; the training is the larger part."""

import numpy as np
import tensorflow as tf

draw = np.random.default_rng(0)
common = tf.data.Dataset.from_tensor_slices(draw.random((4_096, 512), np.float32)).shuffle(1_024).repeat()
rare = tf.data.Dataset.from_tensor_slices(draw.random((256, 512), np.float32)).shuffle(256).repeat()
dataset = tf.data.Dataset.sample_from_datasets([common, rare], [0.8, 0.2])
dataset = dataset.batch(128, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ first) @ second - batch))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


for step, batch in enumerate(dataset):
    train_step(batch)
    if step == 2_000:
        break
