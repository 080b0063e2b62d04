"""Keras `fit` on arrays in memory; the model is far more work than taking rows out of them."""

import keras
import numpy as np
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
draw = np.random.default_rng(0)
features, labels = draw.random((20_000, 256), np.float32), draw.integers(0, 10, 20_000)
dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(2_000).batch(64, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.layers.Dense(4096, "relu"), keras.layers.Dense(4096, "relu"), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(dataset, epochs=5, verbose=0)
