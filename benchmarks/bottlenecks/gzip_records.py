"""Raw images in GZIP TFRecord files: decompression costs more than all later transformations."""

import lab
import records
import tensorflow as tf
from lab import tick, without

SIDE = records.RAW_SIDE


def decode(record):
    if without("decode"):
        return lab.constant(SIDE // 4, SIDE // 4, 3, dtype=tf.uint8)
    image = tf.reshape(tf.io.decode_raw(record, tf.uint8), (SIDE, SIDE, 3))
    return image[::4, ::4]


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(bytes(SIDE * SIDE * 3)).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES, compression_type="GZIP")  # node: records
        dataset = dataset.repeat()
    dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)  # node: decode
    if without("batch"):
        dataset = lab.without_batch(dataset, 8, lab.constant(8, SIDE // 4, SIDE // 4, 3, dtype=tf.uint8))
    else:
        dataset = dataset.batch(8)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for images in dataset:
        train_step(images)
        if tick():
            break


FILES = records.raw_record_files("GZIP")
train_step = lab.dense_step(SIDE * SIDE * 3 // 16, 32)
lab.run(main)
