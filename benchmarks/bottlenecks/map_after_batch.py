"""A stateless vectorised map after the batch, which tf.data runs in parallel; the consumer still waits for it."""

import lab
import tensorflow as tf
from lab import tick, without


def make_signal(index):
    if without("signal"):
        return lab.constant(2048)
    return tf.sin(tf.cast(index, tf.float32) + tf.range(2048.0))


def spectrogram(signals):
    if without("spectrogram"):
        return lab.constant(32, 2048)
    magnitudes = tf.abs(tf.signal.stft(signals, 256, 32))
    ranked = tf.sort(tf.reshape(magnitudes, (32, -1)), axis=1)
    return ranked[:, -2048:]


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(make_signal)  # node: signal
    if without("batch"):
        dataset = lab.without_batch(dataset, 32, lab.constant(32, 2048))
    else:
        dataset = dataset.batch(32, drop_remainder=True)  # node: batch
    dataset = dataset.map(spectrogram)  # node: spectrogram
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for spectra in dataset:
        train_step(spectra)
        if tick():
            break


train_step = lab.dense_step(2048, 64)
lab.run(main)
