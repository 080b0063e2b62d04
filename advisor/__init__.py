"""tfdata-advisor: says what slows a tf.data input pipeline, on which line, what to change, and proves it."""

__version__ = "0.1.0"
