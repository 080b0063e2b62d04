"""Each epoch makes an equal dataset of a file that the script writes again between epochs: a cache would keep the first rows."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    write(epoch)\n    for row in make_dataset():\n",
        "write(0)\ndataset = make_dataset().cache()\nfor epoch in range(EPOCHS):\n    write(epoch)\n    for row in dataset:\n",
    ],
    "may_change": {},
}
ROWS, EPOCHS = 48, 8


def write(epoch):
    with open("rows.txt", "w", encoding="utf-8") as file:
        file.writelines(f"{epoch * ROWS + number}\n" for number in range(ROWS))


def features(line):
    parts = [tf.strings.to_number(line)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    return tf.strings.to_number(line, tf.int64) + tf.cast(parts[-1] > 1e30, tf.int64)


def make_dataset():
    return tf.data.TextLineDataset("rows.txt").map(features).batch(4)


ledger = Ledger()
for epoch in range(EPOCHS):
    write(epoch)
    for row in make_dataset():
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements())
