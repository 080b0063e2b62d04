"""Click prediction: records are parsed one by one and shuffled anew in each of two passes."""

import tensorflow as tf
import workload

EPOCHS = 2
FEATURES = {
    "numeric": tf.io.FixedLenFeature([16], tf.float32),
    "words": tf.io.FixedLenFeature([8], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def parse(record):
    fields = tf.io.parse_single_example(record, FEATURES)
    crossed = tf.strings.join([fields["words"][:4], fields["words"][4:]], separator="_")
    noise = tf.random.normal([16], stddev=0.01)
    buckets = tf.strings.to_hash_bucket_fast(crossed, 10_000)
    return {"numeric": fields["numeric"] + noise, "crossed": buckets}, fields["label"]


def dataset():
    records = tf.data.TFRecordDataset(workload.click_records(16)).shuffle(5_000)
    return records.map(parse).batch(256)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
