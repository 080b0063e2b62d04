"""Two maps that both ask for AUTOTUNE and share all cores; one needs many times the work of the other."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(64, 64, 3)
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (64, 64))


def augment(image):
    if without("augment"):
        return lab.constant(64, 64, 3)
    return tf.image.random_contrast(tf.image.random_flip_left_right(image), 0.8, 1.2)


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(JPEG).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES)  # node: records
        dataset = dataset.repeat()
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # node: decode
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # node: augment
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, 64, 64, 3))
    else:
        dataset = dataset.batch(8, num_parallel_calls=tf.data.AUTOTUNE)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
JPEG = records.one_jpeg()
train_step = lab.dense_step(64 * 64 * 3, 32)
lab.run(main)
