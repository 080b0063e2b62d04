"""What near misses have in common: the text before their bodies, and the script that both give.

The bodies use what `PRELUDE` defines. `train(dataset)` is a light training that waits for its input. With `work=512` it
multiplies matrices of that size.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = '''"""{because}"""

import os
import time

import numpy as np
import sample_data
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
CORES = len(os.sched_getaffinity(0))
range_, slices = tf.data.Dataset.range, tf.data.Dataset.from_tensor_slices


def costly(index):
    """Some milliseconds, always the same for the same index."""
    return tf.sort(tf.sort(tf.sin(tf.cast(index, tf.float32) + tf.reshape(tf.range(65536.0), (256, 256))), 0), 1)


def noisy(image):
    return image + tf.random.normal(tf.shape(image), stddev=0.1)


def load(file):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(file), channels=3), (64, 64)) / 255.0


def jpegs():
    return sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))


def records(compression=""):
    return sample_data.raw_image_records(8, 80, side=128, compression=compression)


def options_of(**values):
    options = tf.data.Options()
    for name, value in values.items():
        holder, _, field = name.rpartition("__")
        setattr(getattr(options, holder) if holder else options, field, value)
    return options


def train(dataset, epochs=1, work=64):
    weights = tf.Variable(tf.random.normal((work, work)))

    @tf.function
    def train_step():
        weights.assign(tf.tanh(weights @ weights))

    for _ in range(epochs):
        for _ in dataset:
            train_step()


'''


@dataclass(frozen=True)
class NearMiss:
    """One script and the rule that must be silent about it."""

    rule: str
    because: str
    """Why the rule must be silent."""
    body: str


def script_of(case: NearMiss) -> str:
    """The text of a script that runs on its own with `examples/` on its path; its tf.data calls are on its own lines."""
    return PRELUDE.replace("{because}", case.because) + case.body.strip() + "\n"
