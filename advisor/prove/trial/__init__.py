"""The child process's half of a proof: compares and benchmarks replayed datasets in the script's own process, with TensorFlow."""
