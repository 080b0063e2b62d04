"""oversized-shuffle: the shuffle's buffer contains gigabytes of images as floats.

The buffer is filled before the first step, and occupies its memory throughout the training. Each image is written to memory
that is in no processor cache, and read from there again. The marked call belongs before the map, where it buffers file
names. `--images` copies of some files represent a large data set.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--images", type=int, default=400_000)
parser.add_argument("--buffer-size", type=int, default=10_000)
parser.add_argument("--steps", type=int, default=3000)
args = parser.parse_args()


def load(file):
    image = tf.reshape(tf.io.decode_raw(tf.io.read_file(file), tf.uint8), (256, 256, 3))
    return tf.cast(image, tf.float32) / 255.0


files = sample_data.raw_image_files(240, side=256)
files = (files * (args.images // len(files) + 1))[: args.images]
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(args.buffer_size)  # <- oversized-shuffle
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 16), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::8, ::8], (-1, 32 * 32 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for step, images in enumerate(dataset):
    loss = train_step(images)
    if step == args.steps:
        break
print(f"loss {loss:.4f}")
