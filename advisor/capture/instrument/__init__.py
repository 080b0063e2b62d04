"""What is patched into TensorFlow: recorder, call sites, consumers, functions, data flow, Keras steps."""
