"""costly-flat-map: each recording is turned into a spectrogram inside `flat_map`, one at a time.

`flat_map` calls its function only when the slices of the previous recording are used up, so that the other cores are idle. The
marked call is the slow one; the fix moves the spectrogram to a parallel map before it.
"""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--recordings", type=int, default=4_000)
args = parser.parse_args()

sounds = tf.random.stateless_normal((16, 48_000), seed=(1, 2))


def slices(number):
    recording = sounds[number % 16]
    spectrum = tf.abs(tf.signal.stft(recording, 1024, 64))
    return tf.data.Dataset.from_tensor_slices(tf.math.log1p(spectrum)[::8])


dataset = tf.data.Dataset.range(args.recordings)
dataset = dataset.flat_map(slices)  # <- costly-flat-map
dataset = dataset.shuffle(500).batch(64).prefetch(tf.data.AUTOTUNE)

weights = tf.Variable(tf.random.normal((513, 8), stddev=0.1))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights))
    weights.assign_sub(0.001 * tape.gradient(loss, weights))
    return loss


for batch in dataset:
    loss = train_step(batch)
print(f"loss {loss:.4f}")
