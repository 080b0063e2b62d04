"""oversized-prefetch: hundreds of batches are prefetched where two are enough.

The pipeline is faster than training, so the buffer fills with gigabytes. The marked call's argument is a number of batches,
each of 12 MB; use `tf.data.AUTOTUNE`.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()


def make_image(index):
    return tf.zeros((256, 256, 3)) + tf.cast(index % 256, tf.float32) / 255.0


dataset = tf.data.Dataset.range(16 * 4000)
dataset = dataset.map(make_image, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(16)
dataset = dataset.prefetch(256)  # <- oversized-prefetch

first = tf.Variable(tf.random.normal((64 * 64 * 3, 512), stddev=0.01))
second = tf.Variable(tf.random.normal((512, 64 * 64 * 3), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::4, ::4], (-1, 64 * 64 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(pixels @ first) @ second - pixels))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second))):
        variable.assign_sub(0.001 * gradient)
    return loss


for step, images in enumerate(dataset):
    loss = train_step(images)
    if step == args.steps:
        break
print(f"loss {loss:.4f}")
