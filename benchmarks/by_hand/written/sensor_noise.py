"""Small vectors: normalised, jittered and rotated one at a time."""

import tensorflow as tf
import workload

EPOCHS = 2
POINTS = tf.random.stateless_normal([240_000, 32], [3, 4])


def jitter(point):
    scaled = (point - tf.reduce_mean(point)) / (tf.math.reduce_std(point) + 1e-6)
    noisy = scaled + tf.random.normal([32], stddev=0.05)
    return tf.roll(noisy, shift=3, axis=0), tf.reduce_max(tf.abs(noisy))


def dataset():
    return tf.data.Dataset.from_tensor_slices(POINTS).shuffle(2_000).map(jitter).batch(256)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
