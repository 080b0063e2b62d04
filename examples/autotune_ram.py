"""autotune-ram: the memory budget of autotuning is larger than the memory of the process.

The budget was set for another machine. With large elements and a fast source, tf.data lets its buffers grow until the process
is killed. The marked call sets the options; without the budget, tf.data uses half of the available memory.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()


def make_image(index):
    return tf.zeros((256, 256, 3)) + tf.cast(index % 256, tf.float32) / 255.0


options = tf.data.Options()
options.autotune.ram_budget = 4 << 40
dataset = tf.data.Dataset.range(16 * args.steps)
dataset = dataset.map(make_image, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
dataset = dataset.with_options(options)  # <- autotune-ram

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::4, ::4], (-1, 64 * 64 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for images in dataset:
    loss = train_step(images)
print(f"loss {loss:.4f}")
