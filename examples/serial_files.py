"""serial-files: many files are read one after the other, by one thread.

`TFRecordDataset` opens the next file when the last one ends, and one core decompresses all of them. The marked call needs
`num_parallel_reads`.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

files = sample_data.raw_image_records(8, 80, side=128, compression="GZIP")

dataset = tf.data.TFRecordDataset(files, compression_type="GZIP")  # <- serial-files
dataset = dataset.shuffle(256)
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
