"""not-input-bound: the training step takes nearly all the time; no change to the input pipeline can help.

Judged by the source alone, every call of the pipeline looks improvable (no cache, a small prefetch). But the consumer never waits
for it. The call that takes the time is marked.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()


def make_signal(index):
    return tf.sin(tf.cast(index, tf.float32) * tf.range(1024.0))


dataset = tf.data.Dataset.range(64 * args.steps)
dataset = dataset.map(make_signal)
dataset = dataset.batch(64, drop_remainder=True)
dataset = dataset.prefetch(1)

first = tf.Variable(tf.random.normal((1024, 4096), stddev=0.01))
second = tf.Variable(tf.random.normal((4096, 1024), stddev=0.01))


@tf.function
def train_step(signals):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(signals @ first) @ second - signals))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second))):
        variable.assign_sub(0.01 * gradient)
    return loss


for signals in dataset:
    loss = train_step(signals)  # <- not-input-bound
print(f"loss {loss:.4f}")
