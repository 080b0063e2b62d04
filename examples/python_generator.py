"""python-generator: elements come from a Python generator, one after the other, under the interpreter's lock.

No later transformation can make Python faster: `num_parallel_calls` and `prefetch` are already used. Replace the marked call
with a source that TensorFlow reads itself.
"""

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3000)
args = parser.parse_args()


def random_walks():
    random = np.random.default_rng()
    for _ in range(16 * args.steps):
        walk = [0.0]
        for step in random.normal(size=1023).tolist():
            walk.append(0.9 * walk[-1] + step)
        yield np.asarray(walk, np.float32)


def normalize(walk):
    return (walk - tf.reduce_mean(walk)) / (tf.math.reduce_std(walk) + 1e-6)


signature = tf.TensorSpec((1024,), tf.float32)
dataset = tf.data.Dataset.from_generator(random_walks, output_signature=signature)  # <- python-generator
dataset = dataset.map(normalize, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((1024, 128), stddev=0.01))


@tf.function
def train_step(walks):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(walks @ weights) - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for walks in dataset:
    loss = train_step(walks)
print(f"loss {loss:.4f}")
