"""no-xla: a step of hundreds of short ops on tensors of fixed shapes.

On a GPU, each op is a separate kernel, and the device waits for its launch. XLA compiles the function in the marked
line to a few kernels: `tf.function(train_step, jit_compile=True)`. On a CPU this gained nothing, so the rule is silent.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
args = parser.parse_args()

features = tf.random.normal((4096, 64))
dataset = tf.data.Dataset.from_tensor_slices(features).batch(64, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

scale = tf.Variable(tf.ones((64,)))
shift = tf.Variable(tf.zeros((64,)))


def train_step(batch):
    with tf.GradientTape() as tape:
        hidden = batch
        for _ in range(40):  # a layer that is made of element-wise ops
            hidden = tf.tanh(hidden * scale + shift) + 0.1 * tf.sigmoid(hidden)
        loss = tf.reduce_mean(tf.square(hidden - batch))
    for variable, gradient in zip((scale, shift), tape.gradient(loss, (scale, shift))):
        variable.assign_sub(0.001 * gradient)
    return loss


run_step = tf.function(train_step)  # <- no-xla
for batch in dataset:
    loss = run_step(batch)
print(f"loss {loss:.4f}")
