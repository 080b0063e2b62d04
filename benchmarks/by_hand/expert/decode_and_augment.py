"""The expert's version: decoded images are cached, and what is random comes behind the cache, in parallel."""

import tensorflow as tf
import workload

EPOCHS = 4
FILES = workload.jpegs()


def load(path):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [160, 160])


def augment(image):
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_crop(image, [128, 128, 3]) / 255.0


def dataset():
    images = tf.data.Dataset.from_tensor_slices(FILES).map(load, num_parallel_calls=tf.data.AUTOTUNE).cache()
    images = images.shuffle(400).map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return images.batch(32, drop_remainder=True).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
