"""cache-too-big: what the cache is to hold is larger than the machine's memory.

`--images` copies of the photographs stand for a large data set; decoded to floats they take a hundred times the memory of
the files. The marked cache belongs before the decoding, where it holds what the files hold.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--images", type=int, default=80_000)
parser.add_argument("--steps", type=int, default=800)
args = parser.parse_args()


def decode(jpeg):
    image = tf.io.decode_jpeg(jpeg, channels=3)
    return tf.image.resize(image, (224, 224)) / 255.0


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
files = (files * (args.images // len(files) + 1))[: args.images]
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(tf.io.read_file, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()  # <- cache-too-big
dataset = dataset.repeat(args.epochs)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((56 * 56 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images[:, ::4, ::4], (-1, 56 * 56 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for step, images in enumerate(dataset):
    loss = train_step(images)
    if step == args.steps:
        break
print(f"loss {loss:.4f}")
