"""full-precision: large matrix products in 32 bit on a processor that multiplies 16-bit floats several times faster.

Tensor cores of a GPU (compute capability 7.0 and later) and the AMX or AVX512_BF16 units of a CPU are idle. The layers of
the marked call take their types from Keras' policy, which nothing sets. A line after the imports does:
`keras.mixed_precision.set_global_policy("mixed_bfloat16")` (on GPUs also `mixed_float16`). Variables and the loss stay in
32 bit.
"""

import argparse

import keras
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=400)
args = parser.parse_args()

features = tf.random.normal((1024, 1024))
targets = tf.reduce_mean(features, axis=1, keepdims=True)
dataset = tf.data.Dataset.from_tensor_slices((features, targets)).batch(256, drop_remainder=True)
dataset = dataset.cache().repeat().prefetch(tf.data.AUTOTUNE)

layers = [keras.layers.Dense(2048, "relu") for _ in range(3)]  # <- full-precision
model = keras.Sequential([keras.Input((1024,)), *layers, keras.layers.Dense(1, dtype="float32")])
model.compile("sgd", "mse")
model.fit(dataset, steps_per_epoch=args.steps, verbose=2)
