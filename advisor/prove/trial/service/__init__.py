"""Runs a pipeline through tf.data service: dispatcher, workers, and the reading side."""
