"""next-step: the pipeline does everything right and still keeps the training waiting, because its work does not fit.

`distort` draws random numbers for each image, so that its results can be neither cached nor stored; its generator has a
state, so that it cannot be called once per batch; and it already runs on all cores. No edit of the pipeline helps. What
is left is to make the marked function cheaper (two sorts of a whole image take most of its time), or to use more cores.
"""

import argparse

import tensorflow as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("--steps", type=int, default=2000)
arguments = arguments.parse_args()
BATCH = 16
generator = tf.random.Generator.from_seed(1)


def distort(image):
    noisy = image + generator.normal((96, 96), stddev=0.1)
    return tf.sort(tf.sort(noisy, axis=0), axis=1)


images = tf.random.normal((512, 96, 96))
dataset = tf.data.Dataset.from_tensor_slices(images).repeat()
dataset = dataset.map(distort, num_parallel_calls=tf.data.AUTOTUNE)  # <- next-step
dataset = dataset.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE).take(arguments.steps)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((96, 8)))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
