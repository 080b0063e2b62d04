"""launch-bound: tf.data takes all cores, and the thread that launches kernels waits for one.

The marked call keeps every core busy. On a GPU, `TF_GPU_THREAD_MODE=gpu_private` in the environment gives the
launches separate threads. Without a GPU there are no kernels to launch, and the rule reports nothing.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=500)
args = parser.parse_args()


def distort(image):
    return tf.sort(image + tf.random.normal((64, 64), stddev=0.1), axis=0)


dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal((256, 64, 64))).repeat()
dataset = dataset.map(distort, num_parallel_calls=tf.data.AUTOTUNE)  # <- launch-bound
dataset = dataset.batch(64, drop_remainder=True).prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = [tf.Variable(tf.random.normal((64, 64), stddev=0.1)) for _ in range(24)]


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        hidden = batch
        for each in weights:
            hidden = tf.tanh(hidden @ each)
        loss = tf.reduce_mean(tf.square(hidden))
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        variable.assign_sub(0.01 * gradient)
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
