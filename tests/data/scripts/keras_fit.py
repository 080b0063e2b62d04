"""Keras `fit` on a random map behind nothing: TensorFlow fuses it with the batch and runs it one at a time."""

import keras
import tensorflow as tf


def augment(i):
    image = tf.random.normal((64, 64))
    for _ in range(12):
        image = tf.matmul(image, image) / 64.0
    return image, tf.cast(i % 2, tf.float32)


train = tf.data.Dataset.range(4000)
train = train.shuffle(100)
train = train.map(augment)  # <- bottleneck
train = train.batch(8)
model = keras.Sequential([keras.layers.Flatten(), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(train, epochs=3, verbose=0)
