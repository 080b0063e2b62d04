"""A job that can be profiled while it runs (sampling mode).

python profiler_server.py --port 6009 &
advisor capture grpc://localhost:6009
"""

import argparse
import time

import tensorflow as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("--port", type=int, default=6009)
arguments.add_argument("--seconds", type=float, default=60)
arguments = arguments.parse_args()


def distort(index):
    return tf.sort(tf.random.normal((200, 200)), axis=0)


dataset = tf.data.Dataset.range(100_000).map(distort).batch(4)
weights = tf.Variable(tf.random.normal((200, 8)))


@tf.function
def train_step(batch):
    weights.assign_sub(0.001 * tf.reduce_mean(tf.linalg.matrix_transpose(batch) @ (batch @ weights), axis=0))


tf.profiler.experimental.server.start(arguments.port)  # before the training
print(f"profiler server on port {arguments.port}", flush=True)
end = time.monotonic() + arguments.seconds
for batch in dataset:
    train_step(batch)
    if time.monotonic() > end:
        break
