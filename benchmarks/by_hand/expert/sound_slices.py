"""The expert's version: spectrograms in parallel, and only the slicing one by one."""

import tensorflow as tf
import workload

EPOCHS = 1


def spectrogram(record):
    sound = tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), [64_000])
    return tf.math.log1p(tf.abs(tf.signal.stft(sound, 512, 256))[:240])


def dataset():
    records = tf.data.TFRecordDataset(workload.signal_records())
    records = records.map(spectrogram, num_parallel_calls=tf.data.AUTOTUNE)
    return records.unbatch().shuffle(500).batch(128).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
