"""autotune-off: an option switches tf.data's autotuning off, and with it the prefetch that it would inject.

Often copied from an answer about memory use. Parallelism and buffers stay where they started. The call to remove (or the
option to set to True) is marked.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.image.resize(image, (64, 64)) / 255.0


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
options = tf.data.Options()
options.autotune.enabled = False
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load)
dataset = dataset.batch(8)
dataset = dataset.with_options(options)  # <- autotune-off

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 64), stddev=0.01))


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
