"""misplaced-prefetch: the only prefetch precedes the expensive work, whose results are not buffered.

Prefetching file names gains nothing, and the records are never decompressed while the model trains. The
options prevent tf.data from adding a prefetch at the end. One belongs after the call that follows the marked one.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()

files = sample_data.raw_image_records(8, 80, side=128, compression="GZIP")

options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
options.experimental_optimization.parallel_batch = False
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.prefetch(tf.data.AUTOTUNE)  # <- misplaced-prefetch
dataset = dataset.flat_map(lambda file: tf.data.TFRecordDataset(file, compression_type="GZIP"))
dataset = dataset.with_options(options)
dataset = dataset.batch(16)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 512), stddev=0.01))


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
