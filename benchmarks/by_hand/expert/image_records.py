"""The expert's version: decoded in parallel, cached, shuffled, batched."""

import tensorflow as tf
import workload

EPOCHS = 4
FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def decode(record):
    fields = tf.io.parse_single_example(record, FEATURES)
    image = tf.io.decode_jpeg(fields["image"], channels=3)
    return tf.image.resize(image, [112, 112]) / 255.0, fields["label"]


def dataset():
    records = tf.data.TFRecordDataset(workload.jpeg_records())
    images = records.map(decode, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return images.shuffle(200).batch(32).prefetch(tf.data.AUTOTUNE)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
