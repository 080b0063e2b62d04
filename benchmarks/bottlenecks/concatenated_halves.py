"""Two concatenated datasets, the second with an expensive map, repeated endlessly and shuffled together."""

import lab
import tensorflow as tf
from lab import tick, without


def make_first(index):
    if without("first"):
        return lab.constant(2048)
    return tf.random.normal((2048,)) + tf.cast(index, tf.float32)


def make_second(index):
    if without("second"):
        return lab.constant(2048)
    return tf.sort(tf.signal.irfft(tf.signal.rfft(tf.random.normal((2048,)) * tf.cast(index, tf.float32))))


def main():
    first = tf.data.Dataset.range(200)
    first = first.map(make_first)  # node: first
    second = tf.data.Dataset.range(200)
    second = second.map(make_second)  # node: second
    dataset = first.concatenate(second)
    dataset = dataset.repeat()
    if without("shuffle"):
        pass
    else:
        dataset = dataset.shuffle(400)  # node: shuffle
    if without("batch"):
        dataset = lab.without_batch(dataset, 32, lab.constant(32, 2048))
    else:
        dataset = dataset.batch(32)  # node: batch

    for signals in dataset:
        train_step(signals)
        if tick():
            break


train_step = lab.dense_step(2048, 64)
lab.run(main)
