"""A costly map inside the function of an interleave: no rewrite reaches it."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3)
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))


def read_file(file):
    if without("records"):
        photographs = tf.data.Dataset.from_tensors(JPEG).repeat(120)
    else:
        photographs = tf.data.TFRecordDataset(file)  # node: records
    return photographs.map(decode)  # node: decode


def main():
    dataset = tf.data.Dataset.from_tensor_slices(FILES).repeat()
    dataset = dataset.interleave(read_file, cycle_length=4)
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8, drop_remainder=True)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
