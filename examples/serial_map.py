"""serial-map: a random map runs one element at a time, because tf.data never parallelises a stateful function by itself.

`tf.data` parallelises stateless maps automatically. `distort` draws random numbers, so it remains a sequential `Map`
while the other cores are idle. The call to change is marked: pass `num_parallel_calls=tf.data.AUTOTUNE`.
"""

import argparse

import tensorflow as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("--steps", type=int, default=4000)
arguments = arguments.parse_args()


def make_image(index):
    return tf.sin(tf.cast(index, tf.float32) + tf.reshape(tf.range(128.0 * 128.0), (128, 128)))


def distort(image):
    noisy = image + tf.random.normal((128, 128), stddev=0.1)
    return tf.sort(tf.sort(noisy, axis=0), axis=1)


dataset = tf.data.Dataset.range(arguments.steps)
dataset = dataset.map(make_image)
dataset = dataset.map(distort)  # <- serial-map
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((128, 32)))


@tf.function
def train_step(image):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(image @ weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for image in dataset:
    loss = train_step(image)
print(f"loss {loss:.4f}")
