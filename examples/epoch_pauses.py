"""epoch-pauses: every epoch creates a new iterator, and the script waits until TensorFlow has destroyed the last one.

An iterator with AUTOTUNE is destroyed immediately, or only at the next update of AUTOTUNE, which after an epoch of 700 ms
is more than half a second later. The loop to change is marked: with `dataset.repeat(args.epochs)` there is one iterator.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=60)
args = parser.parse_args()

features = tf.random.normal((24_576, 256))
dataset = tf.data.Dataset.from_tensor_slices(features).shuffle(1024)
dataset = dataset.batch(64, drop_remainder=True)
dataset = dataset.map(lambda rows: tf.nn.l2_normalize(rows, axis=1), num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((256, 256), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) - batch))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


losses = []
for _ in range(args.epochs):
    for step, batch in enumerate(dataset):  # <- epoch-pauses
        loss = train_step(batch)
        if step % 100 == 0:
            losses.append(loss)
print(f"loss {losses[0]:.4f} at first, {losses[-1]:.4f} at last")
