"""data-layout: a model that changes the order of its images' dimensions around every convolution.

The marked call converts channels-last images to channels-first; the convolution converts them back. Remove both
transposes. The rule needs the kernels of a GPU; on a CPU it reports nothing.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

images = tf.random.normal((128, 64, 64, 16))
dataset = tf.data.Dataset.from_tensor_slices(images).batch(32, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

kernels = [tf.Variable(tf.random.normal((3, 3, 16, 16), stddev=0.05)) for _ in range(4)]


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        for kernel in kernels:
            batch = tf.nn.relu(tf.nn.conv2d(batch, kernel, strides=1, padding="SAME"))
            batch = tf.transpose(batch, (0, 3, 1, 2))  # <- data-layout
            batch -= tf.reduce_mean(batch, axis=(2, 3), keepdims=True)
            batch = tf.transpose(batch, (0, 2, 3, 1))
        loss = tf.reduce_mean(tf.square(batch))
    for variable, gradient in zip(kernels, tape.gradient(loss, kernels)):
        variable.assign_sub(0.01 * gradient)
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
