"""Thousands of files of two records each, opened one after the other by a `flat_map`."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def read_file(file):
    return tf.data.TFRecordDataset(file)  # node: files


def parse(record):
    if without("parse"):
        return lab.constant(1024)
    return tf.ensure_shape(tf.io.decode_raw(record, tf.float32), (1024,))


def main():
    if without("files"):
        dataset = tf.data.Dataset.from_tensors(bytes(4096)).repeat()
    else:
        dataset = tf.data.Dataset.from_tensor_slices(FILES)
        dataset = dataset.flat_map(read_file)  # node: files
        dataset = dataset.repeat()
    dataset = dataset.map(parse)  # node: parse
    if without("batch"):
        dataset = lab.without_batch(dataset, 64, lab.constant(64, 1024))
    else:
        dataset = dataset.batch(64)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for signals in dataset:
        train_step(signals)
        if tick():
            break


FILES = records.small_record_files()
train_step = lab.dense_step(1024, 64)
lab.run(main)
