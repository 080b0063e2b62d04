"""unbatch-rebatch: blocks of rows are split into single rows and batched again.

The rows come in blocks of 5000; `unbatch` followed by `batch` processes each row separately. Replace the marked call and the
`batch` after it with one `.rebatch(8192)`.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=10)
args = parser.parse_args()


def make_block(number):
    rows = tf.random.stateless_normal((5000, 8), seed=tf.stack([number, tf.constant(7, tf.int64)]))
    return rows


dataset = tf.data.Dataset.range(400)
dataset = dataset.map(make_block, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.unbatch()  # <- unbatch-rebatch
dataset = dataset.batch(8192)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((8, 4), stddev=0.1))


@tf.function(reduce_retracing=True)
def train_step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(rows @ weights) - 1.0))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for rows in dataset:
        loss = train_step(rows)
print(f"loss {loss:.4f}")
