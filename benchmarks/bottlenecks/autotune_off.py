"""Autotuning is off, so no prefetch is injected and the consumer waits for all the work."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3)
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(JPEG).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES)  # node: records
        dataset = dataset.repeat()
    dataset = dataset.map(decode)  # node: decode
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(64)  # node: shuffle
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8)  # node: batch
    options = tf.data.Options()
    options.autotune.enabled = False
    dataset = dataset.with_options(options)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
