"""The child's half of a proof: replayed datasets compared and benchmarked in the script's own process, with TensorFlow."""
