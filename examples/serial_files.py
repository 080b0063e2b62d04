"""serial-files: many files are read one after the other, by one thread.

`TFRecordDataset` opens the next file when the last one ends, and one core inflates them all. The marked call lacks
`num_parallel_reads=tf.data.AUTOTUNE`.
"""

import argparse
from pathlib import Path

import numpy as np
import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()


def write_records(folder: Path):
    """Eight GZIP files of raw images."""
    draw = np.random.default_rng(0)
    for number in range(8):
        with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord"), "GZIP") as writer:
            for _ in range(80):
                writer.write(draw.integers(0, 64, 128 * 128 * 3).astype(np.uint8).tobytes())


folder = sample_data.make_once(sample_data.cache_folder() / "gzip-records-of-large-images", write_records)
files = sorted(str(file) for file in folder.glob("*.tfrecord"))

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
