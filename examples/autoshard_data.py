"""autoshard-data: two workers, each of which prepares all elements and evaluates a model on one half of them.

There are no files that auto-sharding could distribute, so TensorFlow shards the elements after the expensive map: the marked
call runs for all elements on both workers. The script starts the second worker itself.
"""

import argparse
import json
import os
import socket
import subprocess
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=300)
args = parser.parse_args()

second = None
if "TF_CONFIG" not in os.environ:
    with socket.create_server(("localhost", 0)) as one, socket.create_server(("localhost", 0)) as other:
        workers = [f"localhost:{each.getsockname()[1]}" for each in (one, other)]
    configs = [json.dumps({"cluster": {"worker": workers}, "task": {"type": "worker", "index": i}}) for i in (0, 1)]
    second = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "TF_CONFIG": configs[1]})
    os.environ["TF_CONFIG"] = configs[0]

import tensorflow as tf  # noqa: E402  (the cluster is known only now)


def make_signal(index):
    signal = tf.cast(index, tf.float32) + tf.random.normal((128, 128))
    for _ in range(4):
        signal = tf.sort(signal, axis=0)
    return signal


try:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    dataset = tf.data.Dataset.range(100_000).repeat()  # if it ended, the workers would ask each other in every step
    dataset = dataset.map(make_signal, num_parallel_calls=tf.data.AUTOTUNE)  # <- autoshard-data
    dataset = dataset.batch(8, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    distributed = strategy.experimental_distribute_dataset(dataset)
    with strategy.scope():
        weights = tf.Variable(tf.random.normal((128, 16), stddev=0.1))

    def replica_step(batch):
        return tf.reduce_mean(tf.square(tf.nn.relu(batch @ weights)))

    @tf.function
    def evaluate_step(batch):
        return strategy.run(replica_step, args=(batch,))

    for step, batch in enumerate(distributed):
        loss = evaluate_step(batch)
        if step == args.steps:
            break
    print(f"loss {strategy.experimental_local_results(loss)[0]:.4f}")
finally:
    if second is not None:
        second.kill()  # TensorFlow catches SIGTERM in workers and goes on
        second.wait()
