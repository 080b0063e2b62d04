"""Raw frames: bytes become a normalised float image, flipped at random, one frame at a time."""

import tensorflow as tf
import workload

EPOCHS = 3
FRAMES = tf.constant([bytes([index % 251]) * (32 * 32 * 3) for index in range(48_000)])


def decode(frame):
    image = tf.reshape(tf.io.decode_raw(frame, tf.uint8), [32, 32, 3])
    image = tf.cast(image, tf.float32) / 255.0
    return tf.where(tf.random.uniform([]) < 0.5, image, tf.reverse(image, [1]))


def dataset():
    return tf.data.Dataset.from_tensor_slices(FRAMES).shuffle(1_000).map(decode).batch(64, drop_remainder=True)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
