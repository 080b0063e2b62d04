"""cache-without-reuse: a cache inside the function of an interleave is created for every file, and never read again.

Each epoch calls the function again, which creates new, empty caches. They only keep every image in memory, so that each
is written to memory that was not used before. Remove the marked call.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

files = sample_data.raw_image_records(2, 240, side=256)


def decode(record):
    return tf.cast(tf.reshape(tf.io.decode_raw(record, tf.uint8), (256, 256, 3)), tf.float32) / 255.0


dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.interleave(
    lambda file: tf.data.TFRecordDataset(file).map(decode).cache(),  # <- cache-without-reuse
    num_parallel_calls=tf.data.AUTOTUNE,
)
dataset = dataset.batch(8)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 16), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::8, ::8], (-1, 32 * 32 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
