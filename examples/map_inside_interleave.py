"""map-inside-interleave: an expensive map is in the function of a `flat_map`, where it runs one element at a time.

tf.data parallelises a stateless map by itself, but not inside another transformation's function. The marked map needs
`num_parallel_calls=tf.data.AUTOTUNE`, or belongs after the `flat_map`.
"""

import argparse
from pathlib import Path

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()


def write_records(folder: Path):
    """Eight files of JPEGs."""
    jpegs = [jpeg for _, jpeg in sample_data.varied_jpegs(400, seed=0)]
    for number in range(8):
        with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
            for jpeg in jpegs[number::8]:
                writer.write(jpeg)


def decode(jpeg):
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64)) / 255.0


def read(file):
    records = tf.data.TFRecordDataset(file)
    return records.map(decode)  # <- map-inside-interleave


folder = sample_data.make_once(sample_data.cache_folder() / "records-of-jpegs", write_records)
files = sorted(str(file) for file in folder.glob("*.tfrecord"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.flat_map(read)
dataset = dataset.shuffle(100)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 64 * 64 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
