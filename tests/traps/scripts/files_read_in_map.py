"""The map reads a file for each row; the loop renders the files anew from the third epoch on."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "files rewritten between epochs",
    "tempting": "repeated-work",
    "wrong": ["dataset.map(load)", "dataset.map(load).cache()"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 40, 6
FOLDER = Path(__file__).parent / "rendered"
FOLDER.mkdir(exist_ok=True)
paths = [str(FOLDER / f"{row}.txt") for row in range(ROWS)]


def render(epoch):
    for row, path in enumerate(paths):
        Path(path).write_text(str(row * (epoch + 1)))


def load(path):
    value = tf.strings.to_number(tf.io.read_file(path), tf.int64)
    return value + busy(value)


render(0)
dataset = tf.data.Dataset.from_tensor_slices(paths)
dataset = dataset.map(load)
dataset = dataset.batch(4)

ledger = Ledger()
for epoch in range(EPOCHS):
    if epoch >= 3:
        render(epoch)
    for value in dataset:
        ledger.train(epoch, value)
ledger.finish(elements=ledger.elements(), order=ledger.order())
