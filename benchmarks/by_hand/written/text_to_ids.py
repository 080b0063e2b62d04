"""Text classification: lines of text become padded rows of word numbers; one pass over the data."""

import tensorflow as tf
import workload

EPOCHS = 1
FILES = workload.text_files()
TABLE = tf.lookup.StaticVocabularyTable(
    tf.lookup.KeyValueTensorInitializer(workload.WORDS, tf.range(len(workload.WORDS), dtype=tf.int64)), 1
)


def to_ids(line):
    text = tf.strings.regex_replace(tf.strings.lower(line), "[^a-z ]", "")
    return TABLE.lookup(tf.strings.split(text))


def dataset():
    return tf.data.TextLineDataset(FILES).map(to_ids).padded_batch(64)


if __name__ == "__main__":
    data = dataset()
    for _ in range(EPOCHS):
        for batch in data:
            workload.step(batch)
