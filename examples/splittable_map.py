"""splittable-map: one function decodes, which is the same every epoch, and augments, which is not.

A cache after the marked map would freeze the augmentation. `advisor fix` cuts the function before the random flip and inserts
the cache between the two halves.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=25)
args = parser.parse_args()


def load_and_augment(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    image = tf.image.resize(image, (64, 64), antialias=True)
    image = tf.image.random_flip_left_right(image)
    return image / 255.0 + tf.random.uniform((), -0.1, 0.1)


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load_and_augment, num_parallel_calls=tf.data.AUTOTUNE)  # <- splittable-map
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
