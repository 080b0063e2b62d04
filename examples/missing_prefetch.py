"""missing-prefetch: the next batch is produced only when the training step requests it.

The options prevent tf.data from adding a prefetch, and the last transformation has no buffer: a batch is never read
while the model trains on the previous one. Add after the marked call:
`.prefetch(tf.data.AUTOTUNE)`.
"""

import argparse
from pathlib import Path

import sample_data
import tensorflow as tf

SIDE = 192

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
args = parser.parse_args()


def write_records(folder: Path):
    """A GZIP TFRecord file of raw uint8 images."""
    with tf.io.TFRecordWriter(str(folder / "images.tfrecord"), "GZIP") as writer:
        for _, jpeg in sample_data.varied_jpegs(400, seed=0):
            image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIDE, SIDE))
            writer.write(tf.cast(image, tf.uint8).numpy().tobytes())


folder = sample_data.make_once(sample_data.cache_folder() / "one-record-file", write_records)
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
options.experimental_optimization.parallel_batch = False
dataset = tf.data.TFRecordDataset(str(folder / "images.tfrecord"), compression_type="GZIP")
dataset = dataset.with_options(options)
dataset = dataset.shuffle(64)
dataset = dataset.batch(8)  # <- missing-prefetch

weights = tf.Variable(tf.random.normal((96 * 96 * 3, 128), stddev=0.01))


@tf.function
def train_step(records):
    images = tf.reshape(tf.io.decode_raw(records, tf.uint8), (-1, SIDE, SIDE, 3))
    pixels = tf.reshape(tf.cast(images[:, ::2, ::2], tf.float32) / 255.0, (-1, 96 * 96 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for records in dataset:
        loss = train_step(records)
print(f"loss {loss:.4f}")
