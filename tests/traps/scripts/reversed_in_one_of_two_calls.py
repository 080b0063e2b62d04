"""Two calls of an imported function, one of which reverses each row; called with batches, it would reverse these."""

from functools import partial

import rows
import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["words.map(partial(rows.encode, is_reversed=True)).batch(256)", "words.batch(256).map(encode_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5


def encode_batch(words):
    codes = rows.table.lookup(words)[::-1]
    return tf.vectorized_map(tf.cumsum, codes, fallback_to_while_loop=False)


texts = [[f"w{(number * place) % 113}" for place in range(1, 6)] for number in range(ROWS)]
words = tf.data.Dataset.from_tensor_slices(texts)
plain = words.map(partial(rows.encode, is_reversed=False)).batch(256)
turned = words.map(partial(rows.encode, is_reversed=True)).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for first, second in zip(plain, turned, strict=True):
        ledger.train(epoch, first)
        ledger.train(epoch, second)
ledger.finish(elements=ledger.elements(), order=ledger.order())
