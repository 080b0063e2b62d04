"""Sound and clicks side by side: each source has its own costly map; random gain."""

import tensorflow as tf
import workload

EPOCHS = 1


def spectrum(record):
    sound = tf.ensure_shape(tf.io.parse_tensor(record, tf.float32), [64_000])
    gain = tf.random.uniform([], 0.8, 1.2)
    return tf.reduce_mean(tf.abs(tf.signal.stft(sound * gain, 1024, 256)), axis=0)


def load(path):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path), channels=3), [96, 96])


def dataset():
    sounds = tf.data.TFRecordDataset(workload.signal_records()).map(spectrum)
    images = tf.data.Dataset.from_tensor_slices(workload.jpegs()).map(load)
    return tf.data.Dataset.zip((sounds, images)).batch(32)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
