"""A replay buffer: the loop writes new records into the file that the next epoch reads."""

from pathlib import Path

import numpy as np
import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "files rewritten between epochs",
    "tempting": "repeated-work",
    "wrong": [".map(parse)", ".map(parse).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 6
BUFFER = str(Path(__file__).parent / "buffer.tfrecord")


def play(epoch):
    with tf.io.TFRecordWriter(BUFFER) as writer:
        for row in range(ROWS):
            writer.write(np.array([epoch * 1000 + row], np.int64).tobytes())


def parse(record):
    row = tf.io.decode_raw(record, tf.int64)[0]
    return row + busy(row)


play(0)
train = tf.data.TFRecordDataset(BUFFER).map(parse).batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    play(epoch + 1)
ledger.finish(elements=ledger.elements(), order=ledger.order(), distinct=ledger.distinct())
