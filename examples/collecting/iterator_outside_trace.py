"""A mistake that the profiler guide warns of: the batch is requested before the Trace begins, so marked steps exclude the wait.

python iterator_outside_trace.py --logdir logs && advisor analyze logs
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


iterator = iter(dataset)
for step in range(20):
    train_step(next(iterator))
with tf.profiler.experimental.Profile(arguments.logdir):
    for step, batch in zip(range(20, arguments.steps), iterator):
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(batch)
