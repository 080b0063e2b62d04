"""rebuilt-every-epoch: the loop calls a function that makes the dataset, so that each epoch starts with making it.

Making it traces the function `features` again, which takes longer than the steps of an epoch, and the cache is empty each time.
The marked call ends the dataset; with `dataset = make_dataset()` before the loop it is made once.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=200)
args = parser.parse_args()

signals = tf.random.stateless_normal((512, 64), seed=(1, 2))


def features(signal):
    parts = []
    for shift in range(1, 40):
        parts.append(tf.reduce_mean(signal * tf.roll(signal, shift, axis=0)))
    return tf.stack(parts)


def make_dataset():
    dataset = tf.data.Dataset.from_tensor_slices(signals)
    dataset = dataset.map(features, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return dataset.shuffle(512).batch(32).prefetch(tf.data.AUTOTUNE)  # <- rebuilt-every-epoch


weights = tf.Variable(tf.random.normal((39, 8), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for batch in make_dataset():
        loss = train_step(batch)
print(f"loss {loss:.4f}")
