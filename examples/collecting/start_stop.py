"""tf.profiler.experimental.start and stop around a few steady steps of a loop.

python start_stop.py --logdir logs && advisor analyze logs
"""

import argparse

import tensorflow as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("--logdir", default="logs")
arguments.add_argument("--steps", type=int, default=60)
arguments = arguments.parse_args()


def distort(index):
    return tf.sort(tf.random.normal((200, 200)), axis=0)


dataset = tf.data.Dataset.range(100_000).map(distort).batch(4)
weights = tf.Variable(tf.random.normal((200, 8)))


@tf.function
def train_step(batch):
    weights.assign_sub(0.001 * tf.reduce_mean(tf.linalg.matrix_transpose(batch) @ (batch @ weights), axis=0))


for step, batch in enumerate(dataset.take(arguments.steps)):
    if step == 20:
        tf.profiler.experimental.start(arguments.logdir)
    train_step(batch)
    if step == arguments.steps - 2:
        tf.profiler.experimental.stop()
