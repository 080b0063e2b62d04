"""cache-too-big: the cached elements are larger than the machine's memory.

`--images` copies of some files represent a large data set of raw images; as floats they take four times the memory of the files.
The first epoch never ends: until memory runs out, each image is written to memory that was never used before, which
costs more than producing the image. Remove the marked call.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--images", type=int, default=400_000)
parser.add_argument("--steps", type=int, default=2000)
args = parser.parse_args()


def load(file):
    image = tf.reshape(tf.io.decode_raw(tf.io.read_file(file), tf.uint8), (128, 128, 3))
    return tf.cast(image, tf.float32) / 255.0


files = sample_data.raw_image_files(480, side=128)
files = (files * (args.images // len(files) + 1))[: args.images]
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()  # <- cache-too-big
dataset = dataset.repeat(args.epochs)
dataset = dataset.batch(8)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((32 * 32 * 3, 16), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images[:, ::4, ::4], (-1, 32 * 32 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for step, images in enumerate(dataset):
    loss = train_step(images)
    if step == args.steps:
        break
print(f"loss {loss:.4f}")
