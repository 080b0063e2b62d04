"""host-saturated: the pipeline runs in parallel on all cores and still keeps the training waiting.

The marked map draws random numbers from a generator with a state, so that its results can neither be cached nor computed
once per batch. AUTOTUNE already runs it on every core, and a prefetch follows the batch: more parallel calls would only
compete for the same cores. What is left is a cheaper function, or the cores of other machines.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=600)
args = parser.parse_args()
BATCH = 16
generator = tf.random.Generator.from_seed(1)


def corrupt(image):
    for _ in range(12):
        image = tf.sort(image + generator.normal((96, 96), stddev=0.1), axis=1)
    return image


images = tf.random.normal((256, 96, 96))
dataset = tf.data.Dataset.from_tensor_slices(images).repeat()
dataset = dataset.map(corrupt, num_parallel_calls=tf.data.AUTOTUNE)  # <- host-saturated
dataset = dataset.batch(BATCH, num_parallel_calls=tf.data.AUTOTUNE).take(args.steps)
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
