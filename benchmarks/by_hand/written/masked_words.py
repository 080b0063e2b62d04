"""A language model: word numbers of fixed length, masked at random one line at a time."""

import tensorflow as tf
import workload

EPOCHS = 3
LENGTH = 128
TOKENS = tf.random.stateless_uniform([64_000, LENGTH], [5, 6], maxval=8_000, dtype=tf.int32)


def mask(tokens):
    chosen = tf.random.uniform([LENGTH]) < 0.15
    replaced = tf.where(tf.random.uniform([LENGTH]) < 0.8, 8_001, tokens)
    return tf.where(chosen, replaced, tokens), tf.where(chosen, tokens, -1)


def dataset():
    return tf.data.Dataset.from_tensor_slices(TOKENS).shuffle(5_000).map(mask).batch(64)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
