"""no-xla: a step of hundreds of short ops on small tensors of fixed shapes.

On a GPU, each op is a separate kernel, and the device waits for its launch; on a CPU, scheduling an op takes longer than the op.
XLA compiles the function in the marked line to a few kernels or loops: `tf.function(train_step, jit_compile=True)`.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
args = parser.parse_args()

features = tf.random.normal((4096, 4))
dataset = tf.data.Dataset.from_tensor_slices(features).batch(32, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = [tf.Variable(tf.random.uniform((), 0.5, 1.5)) for _ in range(40)]  # 40 small models are trained side by side
momenta = [tf.Variable(tf.zeros(())) for _ in weights]


def train_step(batch):
    with tf.GradientTape() as tape:
        loss = 0.0
        for weight in weights:
            hidden = batch
            for _ in range(3):
                hidden = tf.tanh(hidden * weight) + 0.1 * tf.sigmoid(hidden)
            loss += tf.reduce_mean(tf.square(hidden - batch))
    for weight, momentum, gradient in zip(weights, momenta, tape.gradient(loss, weights)):
        momentum.assign(0.9 * momentum + gradient)
        weight.assign_sub(0.001 * momentum)
    return loss


run_step = tf.function(train_step)  # <- no-xla
for batch in dataset:
    loss = run_step(batch)
print(f"loss {loss:.4f}")
