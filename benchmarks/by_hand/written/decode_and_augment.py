"""Image classification: one function decodes, resizes and augments; four passes."""

import tensorflow as tf
import workload

EPOCHS = 4
FILES = workload.jpegs()


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, [160, 160])
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_crop(image, [128, 128, 3]) / 255.0


def dataset():
    return tf.data.Dataset.from_tensor_slices(FILES).shuffle(400).map(load).batch(32, drop_remainder=True)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
