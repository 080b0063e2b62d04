"""late-shuffle: every epoch begins with a wait until a thousand images are augmented.

The images come from a cache, and augmenting them takes about as long as training on them, so both could run in parallel.
But the shuffle follows the augmentation and emits nothing before its buffer is full, so the training waits. The marked
shuffle belongs before the map.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()


def load(file):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(file), channels=3), (64, 64)) / 255.0


def augment(image):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    return tf.clip_by_value(tf.image.random_brightness(image, 0.2), 0.0, 1.0)


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = tf.data.Dataset.from_tensor_slices(files * 4)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE).cache()
dataset = dataset.map(augment)
dataset = dataset.shuffle(1500)  # <- late-shuffle
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 96), stddev=0.01))


@tf.function(reduce_retracing=True)
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 64 * 64 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
