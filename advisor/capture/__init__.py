"""Runs the user's script with TensorFlow instrumented and writes the run folder."""
