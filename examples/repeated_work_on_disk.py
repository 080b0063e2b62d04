"""repeated-work-on-disk: every epoch decodes the same images again, and decoded they are too large for memory.

`--images` copies of the photographs represent a data set of tens of gigabytes. Add after the marked call:
`.cache("a folder on a fast disk")`.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--images", type=int, default=24_000)
parser.add_argument("--steps", type=int, default=1500)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.image.resize(image, (224, 224), method="lanczos5", antialias=True)


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
files = (files * (args.images // len(files) + 1))[: args.images]
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # <- repeated-work-on-disk
dataset = dataset.repeat(args.epochs)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((56 * 56 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    pixels = tf.reshape(images[:, ::4, ::4] / 255.0, (-1, 56 * 56 * 3))
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(pixels @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for step, images in enumerate(dataset):
    loss = train_step(images)
    if step == args.steps:
        break
print(f"loss {loss:.4f}")
