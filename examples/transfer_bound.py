"""transfer-bound: every batch is copied to the GPU when the step requests it, as 32-bit floats.

The marked call is the last transformation. Add after it
`.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))`; the images could also be transferred as `uint8`.
Without a GPU nothing is copied, and the rule reports nothing.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

images = tf.random.uniform((256, 256, 256, 3), maxval=255, dtype=tf.int32)
dataset = tf.data.Dataset.from_tensor_slices(tf.cast(images, tf.uint8)).repeat()
dataset = dataset.batch(32, drop_remainder=True)
dataset = dataset.map(lambda batch: tf.cast(batch, tf.float32) / 255.0, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.take(args.steps)
dataset = dataset.prefetch(tf.data.AUTOTUNE)  # <- transfer-bound

kernel = tf.Variable(tf.random.normal((3, 3, 3, 16), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.conv2d(batch, kernel, strides=2, padding="SAME")))
    kernel.assign_sub(0.01 * tape.gradient(loss, kernel))
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
