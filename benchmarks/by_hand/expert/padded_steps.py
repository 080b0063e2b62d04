"""The expert's version: a padded batch is computed at once, and what is behind the end of a sequence is set to zero."""

import tensorflow as tf
import workload

EPOCHS = 3
LENGTHS = tf.random.stateless_uniform([80_000], [9, 9], 5, 60, tf.int32)


def sequences(lengths):
    steps = tf.range(tf.reduce_max(lengths))
    wave = tf.sin(tf.cast(steps, tf.float32) / 5.0)[None]
    wave += tf.random.normal([tf.size(lengths), tf.size(steps)], stddev=0.1)
    return tf.where(steps[None] < lengths[:, None], tf.clip_by_value(wave, -1.0, 1.0), 0.0)


def dataset():
    lengths = tf.data.Dataset.from_tensor_slices(LENGTHS).batch(64)
    return lengths.map(sequences, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
