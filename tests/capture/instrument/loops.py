"""The beginning of scripts with a training loop, and a short window for them."""

from __future__ import annotations

PIPE = """
import time
import numpy as np
import tensorflow as tf
ds = tf.data.Dataset.range(10**6).map(lambda i: tf.random.normal([30, 30])).batch(4)
"""


SHORT = {"steps": 30, "warmup": 10}
