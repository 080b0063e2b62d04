"""The expensive work was done once and saved; the training loads the finished elements."""

import sample_data
import tensorflow as tf


def make(folder):
    images = tf.data.Dataset.range(2_000).map(lambda i: tf.sin(tf.cast(i, tf.float32) + tf.range(512.0)))
    images.save(str(folder / "rows"))


folder = sample_data.make_once(sample_data.cache_folder() / "saved-rows", make)
dataset = tf.data.Dataset.load(str(folder / "rows"))
dataset = dataset.cache().shuffle(1_000).repeat(50).batch(128, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((512, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 512), stddev=0.02))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ first) @ second - batch))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


for batch in dataset:
    train_step(batch)
