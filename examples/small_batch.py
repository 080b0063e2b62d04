"""small-batch: a batch has so few rows that a step takes as long as with many times as many.

A step of 8 rows runs about a thousand small ops, each with a fixed scheduling cost. The marked call sets
the batch size. A larger one changes the training (fewer updates, and the learning rate must be adapted), so it
is only advice.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
args = parser.parse_args()

series = tf.random.normal((2048, 50, 16))
dataset = tf.data.Dataset.from_tensor_slices(series)
dataset = dataset.batch(8, drop_remainder=True)  # <- small-batch
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

into = tf.Variable(tf.random.normal((16, 64), stddev=0.1))
again = tf.Variable(tf.random.normal((64, 64), stddev=0.1))
out = tf.Variable(tf.random.normal((64, 16), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        state, loss = tf.zeros((tf.shape(batch)[0], 64)), 0.0
        for step in range(49):  # a recurrent network, written out
            state = tf.tanh(batch[:, step] @ into + state @ again)
            loss += tf.reduce_mean(tf.square(state @ out - batch[:, step + 1]))
    variables = (into, again, out)
    for variable, gradient in zip(variables, tape.gradient(loss, variables)):
        variable.assign_sub(0.001 * gradient)
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
