"""A constant `num_parallel_calls=1` for an expensive map, which AUTOTUNE cannot increase."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3)
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))


def scale(image):
    if without("scale"):
        return lab.constant(64, 64, 3)
    return image / 127.5 - 1.0


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(JPEG).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES, num_parallel_reads=2)  # node: records
        dataset = dataset.repeat()
    dataset = dataset.map(decode, num_parallel_calls=1)  # node: decode
    dataset = dataset.map(scale, num_parallel_calls=tf.data.AUTOTUNE)  # node: scale
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8)  # node: batch
    dataset = dataset.prefetch(2)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
