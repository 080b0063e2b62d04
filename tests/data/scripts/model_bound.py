"""The training step is the cost, the input pipeline is far ahead of it."""

import tensorflow as tf

dataset = tf.data.Dataset.range(1_000_000).map(lambda x: tf.fill((256, 256), tf.cast(x, tf.float32))).batch(2)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
weights = tf.Variable(tf.random.normal((256, 256)))


@tf.function
def step(batch):
    for _ in range(20):
        batch = tf.matmul(batch, weights) / 256.0
    return tf.reduce_sum(batch)


for batch in dataset:
    step(batch)
