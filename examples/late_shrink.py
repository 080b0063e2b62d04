"""late-shrink: whole photographs are decoded, and a small part of each is used.

JPEG images can be decoded partially: `tf.image.decode_and_crop_jpeg` decodes only the crop. The marked map is the one to
change.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=40)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.cast(tf.slice(image, (80, 80, 0), (64, 64, 3)), tf.float32) / 255.0


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)  # <- late-shrink
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
