"""repeated-work: every epoch reads, decodes and resizes the same files again.

The map is parallel and the pipeline prefetches, but the consumer still waits, because all cores decode. The result is the same
each epoch and fits in memory. Add `.cache()` after the marked call.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=25)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.cast(tf.image.resize(image, (64, 64), antialias=True), tf.uint8)


def augment(images):
    images = tf.image.random_flip_left_right(tf.cast(images, tf.float32) / 255.0)
    return images + tf.random.uniform((tf.shape(images)[0], 1, 1, 1), -0.1, 0.1)


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # <- repeated-work
dataset = dataset.shuffle(200)
dataset = dataset.batch(16)
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
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
