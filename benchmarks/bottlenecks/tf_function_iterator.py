"""An iterator is passed to a `tf.function` that takes twenty elements per call."""

import lab
import records
import tensorflow as tf
from lab import tick, without

STEPS = 20


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3)
    image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))
    return tf.image.random_flip_left_right(image)


@tf.function
def train_some(iterator):
    for _ in tf.range(STEPS):
        train_step(next(iterator))


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(JPEG).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES)  # node: records
        dataset = dataset.repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(100)  # node: shuffle
    dataset = dataset.map(decode)  # node: decode
    if without("batch"):
        dataset = lab.without_batch(dataset, 4, lab.constant(4, 64, 64, 3))
    else:
        dataset = dataset.batch(4, drop_remainder=True)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    iterator = iter(dataset)
    while True:
        train_some(iterator)
        if tick(STEPS):
            break


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
