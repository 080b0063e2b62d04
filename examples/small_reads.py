"""small-reads: the reader's buffer is so small that every record takes many system calls.

A buffer of 256 bytes was meant to save memory; each record of 12 kB takes fifty reads. Remove `buffer_size` from the marked call,
or set it to a few hundred kilobytes.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

files = sample_data.raw_image_records(4, 1500, side=64)

dataset = tf.data.TFRecordDataset(files, buffer_size=256)  # <- small-reads
dataset = dataset.batch(64, drop_remainder=True)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((64, 16), stddev=0.01))


@tf.function
def train_step(records):
    beginnings = tf.cast(tf.io.decode_raw(tf.strings.substr(records, 0, 64), tf.uint8), tf.float32) / 255.0
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(beginnings @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for records in dataset:
        loss = train_step(records)
print(f"loss {loss:.4f}")
