"""A cache contains the decoded photographs; the expensive augmentation follows it."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(96, 96, 3)
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (96, 96))


def augment(image):
    if without("augment"):
        return lab.constant(96, 96, 3)
    image = tf.image.random_hue(image / 255.0, 0.1)
    image = tf.image.random_jpeg_quality(tf.clip_by_value(image, 0.0, 1.0), 60, 90)
    return tf.image.random_saturation(image, 0.8, 1.2)


def main():
    dataset = tf.data.TFRecordDataset(FILES)
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # node: decode
    dataset = dataset.cache()
    dataset = dataset.repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(480)  # node: shuffle
    dataset = dataset.map(augment)  # node: augment
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 96, 96, 3))
    else:
        dataset = dataset.batch(16)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
train_step = lab.dense_step(96 * 96 * 3, 16)
lab.run(main)
