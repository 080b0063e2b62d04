"""A pipeline with nothing to improve, for which no finding may be reported.

Files are read and photographs decoded in parallel. The decoded ones are cached as bytes before any random op, shuffled,
augmented in batches, and prefetched; the training step takes most of the time.
"""

import argparse

import sample_data
import tensorflow as tf

SIDE = 32

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=80)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.cast(tf.image.resize(image, (SIDE, SIDE), antialias=True), tf.uint8)


def augment(images):
    images = tf.image.random_flip_left_right(tf.cast(images, tf.float32) / 255.0)
    return images + tf.random.uniform((tf.shape(images)[0], 1, 1, 1), -0.1, 0.1)


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = (
    tf.data.Dataset.from_tensor_slices(files)
    .map(load, num_parallel_calls=tf.data.AUTOTUNE)
    .cache()
    .repeat(args.epochs)
    .shuffle(len(files))
    .batch(32, drop_remainder=True, num_parallel_calls=tf.data.AUTOTUNE)
    .map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    .prefetch(tf.data.AUTOTUNE)
)

first = tf.Variable(tf.random.normal((SIDE * SIDE * 3, 2048), stddev=0.01))
second = tf.Variable(tf.random.normal((2048, 64), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        pixels = tf.reshape(images, (-1, SIDE * SIDE * 3))
        loss = tf.reduce_mean(tf.square(tf.nn.relu(pixels @ first) @ second - 1.0))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second))):
        variable.assign_sub(0.001 * gradient)
    return loss


for images in dataset:
    loss = train_step(images)
print(f"loss {loss:.4f}")
