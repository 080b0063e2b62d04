"""offload: a GPU that could train several times faster than this host's cores prepare its input.

The marked map uses all cores, draws random numbers (so that nothing can be cached), and is still too slow.
`tf.data.experimental.service` runs the pipeline on more machines. Without an accelerator the training itself needs
the cores, and the advice does not apply.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()


def augment(image):
    for _ in range(8):
        image = tf.sort(image + tf.random.normal((96, 96), stddev=0.1), axis=0)
    return image


dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal((256, 96, 96))).repeat()
dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)  # <- offload
dataset = dataset.batch(32, drop_remainder=True).prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = tf.Variable(tf.random.normal((96, 96), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights)))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
