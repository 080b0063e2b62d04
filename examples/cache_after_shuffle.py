"""cache-after-shuffle: the cache keeps the order of the first epoch, so the data is never shuffled again.

Nothing is slow here, but every epoch has the same order. The marked cache belongs before `shuffle`.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.image.resize(image, (64, 64), antialias=True) / 255.0


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(len(files))
dataset = dataset.cache()  # <- cache-after-shuffle
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
