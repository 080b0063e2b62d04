"""Texts of similar length share a batch, so there is little padding; the recurrent network takes long per batch."""

import keras
import numpy as np
import tensorflow as tf

draw = np.random.default_rng(0)
texts = tf.ragged.constant([draw.integers(1, 2000, draw.integers(10, 120)).tolist() for _ in range(4_000)])
labels = draw.integers(0, 2, 4_000)
dataset = tf.data.Dataset.from_tensor_slices((texts, labels))
dataset = dataset.map(lambda text, label: (tf.cast(text, tf.int32), label)).cache().shuffle(1_000)
dataset = dataset.bucket_by_sequence_length(
    lambda text, label: tf.size(text), bucket_boundaries=[30, 60, 90], bucket_batch_sizes=[32] * 4, drop_remainder=True
).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential([keras.layers.Embedding(2000, 64), keras.layers.GRU(128), keras.layers.Dense(1)])
model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(dataset, epochs=5, verbose=0)
