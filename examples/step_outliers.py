"""step-outliers: a few steps take many times as long as the others, and together a large part of the time.

Every 25th step writes a checkpoint while training waits for it. The marked call is the additional work of those
steps; it belongs at the end of an epoch, or into an asynchronous checkpoint
(`tf.train.CheckpointOptions(enable_async=True)`).
"""

import argparse
import tempfile

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=5000)
args = parser.parse_args()

features = tf.random.normal((4096, 256))
dataset = tf.data.Dataset.from_tensor_slices(features).batch(64, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE).take(args.steps)

weights = tf.Variable(tf.random.normal((256, 256), stddev=0.1))
table = tf.Variable(tf.random.normal((20_000, 256)))  # an embedding that makes checkpoints large
checkpoint = tf.train.Checkpoint(weights=weights, table=table)


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights) - batch))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


with tempfile.TemporaryDirectory() as folder:
    for step, batch in enumerate(dataset):
        loss = train_step(batch)
        if step % 25 == 24:
            checkpoint.write(f"{folder}/checkpoint")  # <- step-outliers
print(f"loss {loss:.4f}")
