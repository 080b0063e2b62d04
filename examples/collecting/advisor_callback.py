"""advisor.AdvisorCallback: Keras fit watched as by `advisor analyze`, from inside the program.

    python advisor_callback.py --logdir logs

`advisor.install()` is called before the dataset is created, so that the report can name its source lines.
"""

import argparse

import keras
import tensorflow as tf

import advisor

advisor.install()

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
callback = advisor.AdvisorCallback(arguments.logdir, warmup=10, steps=20)
model.fit(dataset, steps_per_epoch=arguments.steps, callbacks=[callback], verbose=0)
print(f"run folder: {callback.folder}")
