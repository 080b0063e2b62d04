"""Records in GZIP files, read one file after the other and parsed one by one; one pass."""

import tensorflow as tf
import workload

EPOCHS = 1
FEATURES = {
    "numeric": tf.io.FixedLenFeature([16], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(record):
    fields = tf.io.parse_single_example(record, FEATURES)
    return tf.math.log1p(tf.abs(fields["numeric"])), fields["label"]


def dataset():
    records = tf.data.TFRecordDataset(workload.click_records(16, 5_000, "GZIP"), compression_type="GZIP")
    return records.map(parse).batch(256)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
