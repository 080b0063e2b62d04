"""single-file: all data is in one file, so one thread reads it while the other cores are idle.

A file is read sequentially by one reader. The same records in as many files as there are cores can be read in
parallel with `interleave`. The marked call reads the file.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=30)
args = parser.parse_args()

files = sample_data.raw_image_records(1, 600, side=128, compression="GZIP")

dataset = tf.data.TFRecordDataset(files[0], compression_type="GZIP")  # <- single-file
dataset = dataset.shuffle(64)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 32), stddev=0.01))


@tf.function
def train_step(records):
    images = tf.reshape(tf.io.decode_raw(records, tf.uint8), (-1, 128, 128, 3))[:, ::4, ::4]
    pixels = tf.reshape(tf.cast(images, tf.float32) / 255.0, (-1, 32 * 32 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for records in dataset:
        loss = train_step(records)
print(f"loss {loss:.4f}")
