"""Keras' TensorBoard callback: profile_batch selects the batches to profile.

python tensorboard_callback.py --logdir logs && advisor analyze logs
"""

import argparse

import keras
import tensorflow as tf

arguments = argparse.ArgumentParser()
arguments.add_argument("--logdir", default="logs")
arguments.add_argument("--steps", type=int, default=60)
arguments = arguments.parse_args()


def distort(index):
    image = tf.sort(tf.random.normal((200, 200)), axis=0)
    return image[0], image[1, :1]


dataset = tf.data.Dataset.range(100_000).map(distort).batch(4)
model = keras.Sequential([keras.layers.Input((200,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
board = keras.callbacks.TensorBoard(arguments.logdir, profile_batch=(20, arguments.steps - 2))
model.fit(dataset, steps_per_epoch=arguments.steps, callbacks=[board], verbose=0)
