"""Train on a folder of photographs, one folder per class, with a custom training loop.

Lists the files, loads each (read, decode, resize), shuffles, batches, and trains step by step with `tf.GradientTape`. The
first run creates the photographs (offline, seconds) below the user's cache or `--data-dir`. Training waits for `map(load)`.
"""

import argparse
import os
import time

import keras
import sample_data
import tensorflow as tf

IMAGE_SIZE = 96
BATCH_SIZE = 32

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", help="where the photographs are kept (default: the user's cache)")
parser.add_argument("--epochs", type=int, default=4)
parser.add_argument("--images", type=int, default=2000)
args = parser.parse_args()

folder = sample_data.image_folder(args.images, args.data_dir)
class_names = sorted(entry.name for entry in folder.iterdir())


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, (IMAGE_SIZE, IMAGE_SIZE), antialias=True) / 255.0
    label = tf.argmax(tf.strings.split(path, os.sep)[-2] == class_names)
    return image, label


dataset = tf.data.Dataset.list_files(str(folder / "*" / "*.jpg"), seed=1)
dataset = dataset.map(load)
dataset = dataset.shuffle(256)
dataset = dataset.batch(BATCH_SIZE, drop_remainder=True)

model = keras.Sequential(
    [
        keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3)),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(len(class_names)),
    ]
)
loss_function = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(0.003)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_function(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(args.epochs):
    start = time.perf_counter()
    for images, labels in dataset:
        loss = train_step(images, labels)
    print(f"epoch {epoch + 1}: loss {loss:.3f}, {time.perf_counter() - start:.1f} s")
