"""Train a small network on photographs from tensorflow-datasets, written the way the tutorials write it.

Reads JPEGs from TFRecord files, decodes and resizes them, augments, shuffles, batches, and trains with Keras `fit`. The first
run creates the photographs (under a minute, offline) below the user's cache or `--data-dir`. Training waits for `map(decode)`.
"""

import argparse

import flowers_like_dataset  # noqa: F401  registers "flowers_like"
import keras
import sample_data
import tensorflow as tf
import tensorflow_datasets as tfds

IMAGE_SIZE = 96
BATCH_SIZE = 32

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", help="where the photographs are kept (default: the user's cache)")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()

(train, validation), info = tfds.load(
    "flowers_like",
    split=["train", "validation"],
    data_dir=sample_data.cache_folder(args.data_dir),
    as_supervised=True,
    with_info=True,
    decoders={"image": tfds.decode.SkipDecoding()},
)


def decode(jpeg, label):
    image = tf.io.decode_jpeg(jpeg, channels=3)
    image = tf.image.resize(image, (IMAGE_SIZE, IMAGE_SIZE))
    return image / 255.0, label


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_brightness(image, 0.2)
    return tf.clip_by_value(image, 0.0, 1.0), label


train = train.map(decode)
train = train.map(augment)
train = train.shuffle(1000)
train = train.batch(BATCH_SIZE)

validation = validation.map(decode).batch(BATCH_SIZE)

model = keras.Sequential(
    [
        keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3)),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(info.features["label"].num_classes),
    ]
)
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(train, validation_data=validation, epochs=args.epochs, verbose=2)
