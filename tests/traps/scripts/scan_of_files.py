"""A running mean over records that are read from several files, one file after the other."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "order-dependent functions",
    "tempting": "serial-files",
    "wrong": ['TFRecordDataset(files, "GZIP")', 'TFRecordDataset(files, "GZIP", num_parallel_reads=4)'],
    "may_change": {"order": ["reordered"]},
}
FILES, RECORDS, EPOCHS = 6, 60, 8
FOLDER = Path(__file__).parent / "records"
FOLDER.mkdir(exist_ok=True)

files = [str(FOLDER / f"part-{number}.tfrecord.gz") for number in range(FILES)]
for number, file in enumerate(files):
    with tf.io.TFRecordWriter(file, tf.io.TFRecordOptions("GZIP", compression_level=1)) as writer:
        for record in range(RECORDS):
            payload = np.random.default_rng(record).integers(0, 99, 60_000).astype(np.int32)
            payload[0] = number * RECORDS + record
            writer.write(payload.tobytes())


def first_number(record):
    return tf.cast(tf.io.decode_raw(tf.strings.substr(record, 0, 4), tf.int32)[0], tf.int64)


def add_up(total, row):
    return total + row, (row, total + row)


train = tf.data.TFRecordDataset(files, "GZIP")
train = train.map(first_number)
train = train.scan(tf.constant(0, tf.int64), add_up)
train = train.batch(8)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, total in train:
        ledger.train(epoch, row, total)
ledger.finish(elements=ledger.elements(), order=ledger.order())
