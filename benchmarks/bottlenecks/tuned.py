"""A pipeline as the performance guide recommends: parallel reads and maps, a cache before the augmentation, a prefetch last."""

import lab
import records
import tensorflow as tf
from lab import tick, without


def decode(jpeg):
    if without("decode"):
        return lab.constant(32, 32, 3, dtype=tf.uint8)
    return tf.cast(tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (32, 32)), tf.uint8)


def augment(images):
    if without("augment"):
        return lab.constant(32, 32, 32, 3)
    images = tf.cast(images, tf.float32) / 255.0
    return images + tf.random.uniform((32, 1, 1, 1), -0.1, 0.1)


def main():
    dataset = tf.data.Dataset.from_tensor_slices(FILES)
    dataset = dataset.interleave(tf.data.TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # node: decode
    dataset = dataset.cache()
    dataset = dataset.repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(256)  # node: shuffle
    if without("batch"):
        dataset = lab.without_batch(dataset, 32, lab.constant(32, 32, 32, 3, dtype=tf.uint8))
    else:
        dataset = dataset.batch(32, drop_remainder=True)  # node: batch
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # node: augment
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.jpeg_record_files()
train_step = lab.dense_step(32 * 32 * 3, 2048)
lab.run(main)
