"""Each epoch makes an equal dataset that augments at random: one that is made once may not keep what the first epoch drew."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    for row in make_dataset():\n",
        "dataset = make_dataset().cache()\nfor epoch in range(EPOCHS):\n    for row in dataset:\n",
    ],
    "may_change": {},
}
ROWS, EPOCHS = 48, 8


def augment(row):
    parts = [tf.cast(row, tf.float32)]
    for number in range(200):
        parts.append(tf.sin(parts[-1] + number))
    draw = tf.random.uniform([], 0, 1 << 20, tf.int64)
    return row + tf.cast(parts[-1] > 1e30, tf.int64), draw


def make_dataset():
    return tf.data.Dataset.range(ROWS).map(augment).batch(4)


ledger = Ledger()
draws = []
for epoch in range(EPOCHS):
    for row in make_dataset():
        ledger.train(epoch, row[0])
        draws.append((epoch, row[1].numpy().tolist()))
drawn = {epoch: tuple(number for other, numbers in draws if other == epoch for number in numbers) for epoch in range(EPOCHS)}
ledger.finish(elements=ledger.elements(), is_drawn_anew=len(set(drawn.values())) == EPOCHS)
