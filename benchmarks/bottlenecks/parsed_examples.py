"""`tf.train.Example` records of forty scalar features, parsed one at a time."""

import lab
import records
import tensorflow as tf
from lab import tick, without

FEATURES = {f"f{index:02d}": tf.io.FixedLenFeature((), tf.float32) for index in range(40)}


def parse(record):
    if without("parse"):
        return lab.constant(40)
    parsed = tf.io.parse_single_example(record, FEATURES)
    return tf.stack([parsed[name] for name in sorted(FEATURES)])


def main():
    if without("records"):
        dataset = tf.data.Dataset.from_tensors(RECORD).repeat()
    else:
        dataset = tf.data.TFRecordDataset(FILES)  # node: records
        dataset = dataset.repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(2048)  # node: shuffle
    dataset = dataset.map(parse, num_parallel_calls=1)  # node: parse
    if without("batch"):
        dataset = lab.without_batch(dataset, 128, lab.constant(128, 40))
    else:
        dataset = dataset.batch(128)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for features in dataset:
        train_step(features)
        if tick():
            break


FILES = records.example_record_files()
RECORD = next(iter(tf.data.TFRecordDataset(FILES)))
train_step = lab.dense_step(40, 64)
lab.run(main)
