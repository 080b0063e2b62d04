"""One helper reads two files: the rows for training stay as they are, the loop rewrites those for validation."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "one text that makes several datasets",
    "tempting": "repeated-work",
    "wrong": ["lines.map(parse)", "lines.map(parse).cache()"],
    "may_change": {"order": ["reordered"]},
}
EPOCHS = 6
FOLDER = Path(__file__).parent
TRAIN, VALIDATION = FOLDER / "train.txt", FOLDER / "validation.txt"


def write(path, rows):
    path.write_text("".join(f"{row}\n" for row in rows))


def parse(line):
    row = tf.strings.to_number(line, tf.int64)
    return row + busy(row)


def read(path, batch_size):
    lines = tf.data.TextLineDataset(str(path))
    lines = lines.map(parse)
    return lines.batch(batch_size)


write(TRAIN, range(48))
write(VALIDATION, range(4))
train, validation = read(TRAIN, 4), read(VALIDATION, 4)

ledger = Ledger()
sums = []
for epoch in range(EPOCHS):
    for row in train:
        ledger.train(epoch, row)
    sums.append(sum(int(tf.reduce_sum(row)) for row in validation))
    write(VALIDATION, range(epoch + 5))
ledger.finish(elements=ledger.elements(), order=ledger.order(), validation=sums)
