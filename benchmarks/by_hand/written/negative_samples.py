"""A recommender: item names are looked up and random negatives are drawn for each of them."""

import tensorflow as tf
import workload

EPOCHS = 2
COUNT = len(workload.WORDS)
TABLE = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(workload.WORDS, tf.range(COUNT, dtype=tf.int64)), -1
)
NAMES = tf.constant(workload.WORDS * 1_800)


def with_negatives(name):
    positive = TABLE.lookup(name)
    negatives = tf.random.uniform([8], maxval=COUNT, dtype=tf.int64)
    return tf.concat([positive[None], negatives], 0)


def dataset():
    return tf.data.Dataset.from_tensor_slices(NAMES).shuffle(4_000).map(with_negatives).batch(512)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
