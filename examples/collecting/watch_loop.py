"""advisor.watch around a loop: watched as by `advisor analyze`, from inside the program.

    python watch_loop.py --logdir logs

`advisor.install()` is called before the dataset is created, so that the report can name its source lines.
"""

import argparse

import tensorflow as tf

import advisor

advisor.install()

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


with advisor.watch(arguments.logdir, warmup=10, steps=20) as run:
    for batch in dataset.take(arguments.steps):
        train_step(batch)
print(f"run folder: {run.folder}")
