"""Moving a pipeline to tf.data service: what may move, how many workers it takes, and the files to run them.

In: an `Analysis`, measurements.  Out: `Movability`, `Sizing`, texts of files. Pure functions without TensorFlow; the measurement
with real processes is in `advisor/prove/trial/`.
"""
