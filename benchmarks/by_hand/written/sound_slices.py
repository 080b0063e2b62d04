"""Keyword spotting: a record is turned into a spectrogram and cut into slices, inside `flat_map`."""

import tensorflow as tf
import workload

EPOCHS = 1


def slices(record):
    sound = tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), [64_000])
    spectrogram = tf.abs(tf.signal.stft(sound, 512, 256))
    return tf.data.Dataset.from_tensor_slices(tf.math.log1p(spectrogram[:240]))


def dataset():
    records = tf.data.TFRecordDataset(workload.signal_records())
    return records.flat_map(slices).shuffle(500).batch(128)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
