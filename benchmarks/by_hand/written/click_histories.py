"""Recommendations: records with what a user clicked, a list of varying length, parsed one by one and padded; one pass."""

import tensorflow as tf
import workload

EPOCHS = 1
FEATURES = {
    "clicks": tf.io.VarLenFeature(tf.int64),
    "seconds": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(record):
    fields = tf.io.parse_single_example(record, FEATURES)
    clicks = tf.cast(tf.sparse.to_dense(fields["clicks"]), tf.int32)
    return {"clicks": clicks, "seconds": tf.sqrt(fields["seconds"])}, fields["label"]


def dataset():
    records = tf.data.TFRecordDataset(workload.history_records())
    return records.map(parse).shuffle(2_000).padded_batch(128)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
