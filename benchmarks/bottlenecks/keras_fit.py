"""Keras `fit` over decoded photographs, labels and all: tf.data runs the map in parallel by itself, all cores are busy."""

import keras
import lab
import records
import tensorflow as tf
from lab import without


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3), tf.constant(0)
    image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))
    return image, tf.strings.length(jpeg) % 2


def scale(image, label):
    if without("scale"):
        return lab.constant(64, 64, 3), tf.constant(0)
    return image / 127.5 - 1.0, label


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(JPEG).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES)  # node: records
        dataset = dataset.repeat()
    dataset = dataset.map(decode)  # node: decode
    dataset = dataset.map(scale)  # node: scale
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(128)  # node: shuffle
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, (lab.constant(16, 64, 64, 3), lab.constant(16, dtype=tf.int32)))
    else:
        dataset = dataset.batch(16)  # node: batch
    model.fit(dataset, steps_per_epoch=1_000_000, shuffle=False, verbose=0, callbacks=[lab.keras_clock()])


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.Conv2D(8, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="sgd", loss=keras.losses.BinaryCrossentropy(from_logits=True))
lab.run(main)
