"""A function for the script `reversed_in_one_of_two_calls`."""

import tensorflow as tf

KEYS = tf.lookup.KeyValueTensorInitializer([f"w{number}" for number in range(100)], list(range(100)))
table = tf.lookup.StaticHashTable(KEYS, -1)


def encode(words, is_reversed=False):
    codes = table.lookup(words)
    if is_reversed:
        codes = codes[::-1]
    return tf.cumsum(codes)
