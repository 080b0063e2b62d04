"""The input pipelines of the repository that `ci_gate.py` changes: reads from a slow storage are simulated by waiting."""

import time

import numpy as np
import tensorflow as tf

TRAINING, VALIDATION, BATCH = 512, 128, 4
SIDE = 96
READ_S, AUGMENT_S = 0.004, 0.02


def read(index):
    time.sleep(READ_S)
    return np.full((SIDE, SIDE, 3), index % 7, np.float32)


def jitter(image):
    time.sleep(AUGMENT_S)
    return image + np.float32(0.5)


def load(index):
    image = tf.numpy_function(read, [index], tf.float32)
    return tf.ensure_shape(image, (SIDE, SIDE, 3))


def augment(image):
    image = tf.numpy_function(jitter, [image], tf.float32)
    return tf.ensure_shape(image, (SIDE, SIDE, 3))


def training():
    images = tf.data.Dataset.range(TRAINING)
    images = images.map(load, num_parallel_calls=4)
    images = images.cache()
    images = images.map(augment, num_parallel_calls=4)
    images = images.shuffle(64)
    return images.batch(BATCH).prefetch(2)


def validation():
    images = tf.data.Dataset.range(TRAINING, TRAINING + VALIDATION)
    images = images.map(load, num_parallel_calls=4)
    images = images.cache()
    return images.batch(BATCH).prefetch(2)
