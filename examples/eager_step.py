"""eager-step: the training step runs eagerly, op by op.

The step is an ordinary Python function: its ops are dispatched one by one, and none are fused or run in parallel.
The step starts at the marked call; `@tf.function` on `train_step` turns it into a graph.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3000)
args = parser.parse_args()

features = tf.random.normal((4096, 64))
dataset = tf.data.Dataset.from_tensor_slices(features).batch(32, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = [tf.Variable(tf.random.normal((64, 64), stddev=0.1)) for _ in range(6)]


def train_step(batch):
    with tf.GradientTape() as tape:
        hidden = batch
        for each in weights:
            hidden = tf.nn.relu(hidden @ each)
        loss = tf.reduce_mean(tf.square(hidden - batch))
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        variable.assign_sub(0.001 * gradient)
    return loss


for batch in dataset:
    loss = train_step(batch)  # <- eager-step
print(f"loss {loss:.4f}")
