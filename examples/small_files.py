"""small-files: every element is a separate small file, and opening it costs more than reading it.

There are twenty thousand files of 2 kB. In a few TFRecord files, the same bytes could be read in large blocks. The marked
map opens the files.
"""

import argparse
from pathlib import Path

import numpy as np
import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=15)
args = parser.parse_args()


def write_files(folder: Path):
    """20 000 files of 512 numbers each."""
    draw = np.random.default_rng(0)
    for number in range(20_000):
        part = folder / f"{number % 100:02d}"
        part.mkdir(exist_ok=True)
        (part / f"{number:05d}.raw").write_bytes(draw.random(512, np.float32).tobytes())


def load(file):
    return tf.ensure_shape(tf.io.decode_raw(tf.io.read_file(file), tf.float32), (512,))


folder = sample_data.make_once(sample_data.cache_folder() / "small-files", write_files)
files = sorted(str(file) for file in folder.glob("*/*.raw"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # <- small-files
dataset = dataset.batch(64)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((512, 32), stddev=0.1))


@tf.function(reduce_retracing=True)
def train_step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(rows @ weights) - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for rows in dataset:
        loss = train_step(rows)
print(f"loss {loss:.4f}")
