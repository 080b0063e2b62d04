"""parse-per-record: every record is parsed by a call of its own.

Calling the parser costs more than parsing. Behind the batch, `tf.io.parse_example` parses all its records in one call. The
marked map is the one to move and to change.
"""

import argparse
from pathlib import Path

import numpy as np
import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()

FEATURES = {f"f{i}": tf.io.FixedLenFeature((), tf.float32) for i in range(40)}


def write_examples(folder: Path):
    """One file of 40 000 tf.Examples with 40 numbers each."""
    draw = np.random.default_rng(0)
    with tf.io.TFRecordWriter(str(folder / "0.tfrecord")) as writer:
        for row in draw.normal(size=(40_000, 40)):
            feature = {f"f{i}": tf.train.Feature(float_list=tf.train.FloatList(value=[x])) for i, x in enumerate(row)}
            writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())


def parse(record):
    row = tf.io.parse_single_example(record, FEATURES)
    return tf.stack(list(row.values()))


folder = sample_data.make_once(sample_data.cache_folder() / "numbers-as-examples", write_examples)
dataset = tf.data.TFRecordDataset(str(folder / "0.tfrecord"))
dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)  # <- parse-per-record
dataset = dataset.batch(256)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((40, 16), stddev=0.1))


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
