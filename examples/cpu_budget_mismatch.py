"""cpu-budget-mismatch: the CPU budget of autotuning is much larger than the number of cores that the process may use.

The budget was set for another machine. tf.data starts a hundred parallel calls, which compete for the available cores.
The marked call sets the options; without the budget, tf.data uses the number of cores of the machine.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=20)
args = parser.parse_args()


def load(file):
    image = tf.io.decode_jpeg(tf.io.read_file(file), channels=3)
    return tf.image.resize(image, (64, 64)) / 255.0


files = sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))
options = tf.data.Options()
options.autotune.cpu_budget = 128
options.threading.private_threadpool_size = 128
dataset = tf.data.Dataset.from_tensor_slices(files)
dataset = dataset.shuffle(len(files))
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(16)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
dataset = dataset.with_options(options)  # <- cpu-budget-mismatch

weights = tf.Variable(tf.random.normal((64 * 64 * 3, 32), stddev=0.01))


@tf.function
def train_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 64 * 64 * 3)) @ weights - 1.0))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for _ in range(args.epochs):
    for images in dataset:
        loss = train_step(images)
print(f"loss {loss:.4f}")
