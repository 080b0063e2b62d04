"""late-filter: most images are decoded and then discarded.

The filter uses only the label, which the map does not change. The marked filter belongs before the map.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()

CLASSES = sample_data.CLASS_NAMES


def load(file, label):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.image.resize(image, (64, 64), antialias=True) / 255.0, label


def is_wanted(image, label):
    return label < 2


files = sorted(sample_data.image_folder(480).glob("*/*.jpg"))
labels = [CLASSES.index(file.parent.name) for file in files]
dataset = tf.data.Dataset.from_tensor_slices(([str(file) for file in files], labels))
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.filter(is_wanted)  # <- late-filter
dataset = dataset.batch(8)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 8), stddev=0.01))


@tf.function(reduce_retracing=True)
def train_step(images, labels):
    with tf.GradientTape() as tape:
        logits = tf.reshape(images, (-1, 64 * 64 * 3)) @ weights
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images, labels in dataset:
        loss = train_step(images, labels)
print(f"loss {loss:.4f}")
