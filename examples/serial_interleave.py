"""serial-interleave: files are interleaved, but read one at a time by the same thread.

`interleave` alternates between four compressed files. Without `num_parallel_calls`, each record is read and decompressed on
request, by the requesting thread. The call to change is marked: pass `num_parallel_calls=tf.data.AUTOTUNE`.
"""

import argparse
from pathlib import Path

import sample_data
import tensorflow as tf

SIDE = 192

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()


def write_records(folder: Path):
    """Four GZIP TFRecord files of raw uint8 images."""
    for part in range(4):
        with tf.io.TFRecordWriter(str(folder / f"{part}.tfrecord"), "GZIP") as writer:
            for _, jpeg in sample_data.varied_jpegs(100, seed=part):
                image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIDE, SIDE))
                writer.write(tf.cast(image, tf.uint8).numpy().tobytes())


def decode(records):
    images = tf.reshape(tf.io.decode_raw(records, tf.uint8), (-1, SIDE, SIDE, 3))
    return tf.cast(images[:, ::4, ::4], tf.float32) / 255.0


folder = sample_data.make_once(sample_data.cache_folder() / "interleaved-records", write_records)
dataset = tf.data.Dataset.list_files(str(folder / "*.tfrecord"), shuffle=False)
dataset = dataset.interleave(  # <- serial-interleave
    lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP"), cycle_length=4
)
dataset = dataset.batch(8)
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((48 * 48 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 48 * 48 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
