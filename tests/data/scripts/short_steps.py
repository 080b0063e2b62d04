"""Keras `fit` of a model so small that Python between the steps takes as long as they do."""

import keras
import tensorflow as tf

features = tf.random.normal((1024, 64))
train = tf.data.Dataset.from_tensor_slices((features, features[:, :1])).cache().repeat(200)
train = train.batch(32, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(train, verbose=0)
