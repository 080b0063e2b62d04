"""A function with 180 ops on numbers in one line, and three longer ones in another, which cost less."""

import time

import tensorflow as tf


def features(number):
    number = tf.cast(number, tf.float32)
    long = tf.reduce_sum(tf.tanh(tf.fill([6000], number)))  # long
    for _ in range(60):
        number = tf.tanh(number * 1.1) + 0.1  # short
    return number + long


for _ in tf.data.Dataset.range(10**9).map(features).batch(64):
    time.sleep(0.0005)
